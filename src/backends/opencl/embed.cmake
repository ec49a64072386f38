# Makes a C++ source of a text file: cmake -DINPUT=add.cl -DOUTPUT=add_cl.cpp -DNAME=add_cl -P embed.cmake
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "#include \"backends/opencl/kernel_sources.h\"

namespace xpuruntime::opencl {
const char ${NAME}[] = R\"~~~(${text})~~~\";
}  // namespace xpuruntime::opencl
")

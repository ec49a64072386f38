# OpenBLAS frees its memory when the process ends, also while other threads still multiply with it. The member of the
# archive that asks for that is linked from a copy that does not ask.
set(folder ${PROJECT_BINARY_DIR}/openblas)
file(MAKE_DIRECTORY ${folder})
set(openblas_memory "")
execute_process(COMMAND ${CMAKE_AR} p ${OPENBLAS_ARCHIVE} memory.o OUTPUT_FILE ${folder}/memory.o RESULT_VARIABLE extracted)
if(extracted EQUAL 0)
  execute_process(COMMAND ${CMAKE_OBJCOPY} --remove-section=.fini_array --remove-section=.rela.fini_array ${folder}/memory.o
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_AR} rcs ${folder}/libopenblas_memory.a ${folder}/memory.o COMMAND_ERROR_IS_FATAL ANY)
  # All of it, before the archive is asked.
  set(openblas_memory -Wl,--whole-archive ${folder}/libopenblas_memory.a -Wl,--no-whole-archive)
else()
  message(WARNING "${OPENBLAS_ARCHIVE} has no memory.o: a process that ends while threads are in OpenBLAS may crash")
endif()

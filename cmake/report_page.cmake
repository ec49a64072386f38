# The files of the page that `xrt report` makes become constants of the library. Included by the build, this file says when
# to make them; as a script it does.
set(folder ${CMAKE_CURRENT_LIST_DIR}/../src/runtime/report)
set(report_html page.html)
set(report_css style.css tables.css)
set(report_js text.js facts.js chart.js detail.js decisions.js sections.js start.js)
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(out ${PROJECT_BINARY_DIR}/report_files.cpp)
  list(TRANSFORM report_html PREPEND ${folder}/ OUTPUT_VARIABLE files)
  list(TRANSFORM report_css PREPEND ${folder}/ OUTPUT_VARIABLE styles)
  list(TRANSFORM report_js PREPEND ${folder}/ OUTPUT_VARIABLE scripts)
  add_custom_command(OUTPUT ${out} DEPENDS ${files} ${styles} ${scripts} ${CMAKE_CURRENT_LIST_FILE} VERBATIM
                     COMMAND ${CMAKE_COMMAND} -D out=${out} -P ${CMAKE_CURRENT_LIST_FILE})
  target_sources(xrt_runtime PRIVATE ${out})
  return()
endif()

set(text "#include \"runtime/report_files.h\"\n\nnamespace xpuruntime {\n")
foreach(name report_html report_css report_js)
  string(APPEND text "\nconst std::string_view ${name} =")
  foreach(file IN LISTS ${name})  # a literal each: their length has a limit
    file(READ ${folder}/${file} content)
    string(APPEND text "\n    R\"embedded(${content})embedded\"")
  endforeach()
  string(APPEND text ";\n")
endforeach()
file(WRITE ${out} "${text}\n}  // namespace xpuruntime\n")

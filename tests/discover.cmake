# xrt_discover_tests(TARGET PREFIX LABEL): a ctest entry for each test; in sanitized builds, where a process takes seconds (on
# aarch64 the search for leaks at its end takes four), for every few suites. As a script this file writes those entries.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  include(GoogleTest)
  set(discover_script ${CMAKE_CURRENT_LIST_FILE})

  function(xrt_discover_tests target prefix label)
    if(NOT XRT_SANITIZE)
      gtest_discover_tests(${target} TEST_PREFIX ${prefix}. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${label})
      return()
    endif()
    set(suites ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
    add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS ${suites} VERBATIM
      COMMAND ${CMAKE_COMMAND} -D tests=$<TARGET_FILE:${target}> -D prefix=${prefix} -D label=${label} -D out=${suites}
              -P ${discover_script})
    # ctest reads this one first: a target that was not built has no suites yet.
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake "include(\"${suites}\" OPTIONAL)\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
  endfunction()
  return()
endif()

execute_process(COMMAND ${tests} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n[^ \n]+\\." suites "\n${listed}")
list(TRANSFORM suites REPLACE "^\n(.*)$" "\\1*")
set(text "")
while(suites)
  set(filter "")
  foreach(next RANGE 1 6)
    list(POP_FRONT suites suite)
    list(APPEND filter ${suite})
  endforeach()
  list(LENGTH filter count)
  list(GET filter 0 name)
  string(REGEX REPLACE "\\.\\*$" "" name "${prefix}.${name}")
  if(count GREATER 1)
    math(EXPR others "${count} - 1")
    string(APPEND name "+${others}")
  endif()
  string(REPLACE ";" ":" filter "${filter}")
  string(APPEND text "add_test([==[${name}]==] [==[${tests}]==] [==[--gtest_filter=${filter}]==])\n"
    "set_tests_properties([==[${name}]==] PROPERTIES LABELS ${label} ENVIRONMENT XRT_TEST_REDUCED=3\n"
    "  SKIP_REGULAR_EXPRESSION [==[PASSED  \\] 0 tests]==])\n")
endwhile()
file(WRITE ${out} "${text}")

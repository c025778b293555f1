# Compiling parts of this build with libpm's pass plugin, so that they mark what they store to
# (PM_TRACKER_STORES).
#
# PMCC_LOADABLE             the compilers of this build can load the plugin: clang, of LLVM's version
# pmcc_instrument(TARGET [DISCOVER])   compile TARGET's sources with it; DISCOVER: as `pmcc --discover`,
#                           and link what that takes
# pmcc_program(NAME SOURCES file... [LINK library...])   a program, by target build_NAME, that pmcc or pm++ makes, whatever
#                           compiles the rest; it links the shared libpm, and static libraries of this build
#
# PMCC_ZEROS                small variables begin as zeros: what pmcc gives to the compiler beside the plugin
set(PMCC_ZEROS -ftrivial-auto-var-init=zero -ftrivial-auto-var-init-max-size=1024)

set(PMCC_LOADABLE FALSE)
if(LIBPM_PMCC AND CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
   AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 19
   AND CMAKE_C_COMPILER_VERSION VERSION_LESS 20)
  set(PMCC_LOADABLE TRUE)
endif()

# Call it when the target has all its sources. What TARGET links is not affected: libraries have to
# be instrumented by themselves.
function(pmcc_instrument target)
  if(NOT PMCC_LOADABLE)
    message(FATAL_ERROR "${target} needs LIBPM_PMCC, and clang 19 as the compiler")
  endif()
  target_compile_options(${target} PRIVATE ${PMCC_ZEROS} -fpass-plugin=$<TARGET_FILE:pmcc-pass>)
  if("DISCOVER" IN_LIST ARGN)
    target_compile_options(${target} PRIVATE -fplugin=$<TARGET_FILE:pmcc-pass>
      "SHELL:-Xclang -mllvm -Xclang -pm-discover" "SHELL:-Xclang -mllvm -Xclang -disable-lsr"
      "SHELL:-include ${PROJECT_SOURCE_DIR}/include/libpm_discover.h")
    target_link_libraries(${target} PRIVATE pm_discover pm_static)
  endif()
  # A new plugin makes every object stale. The property knows no generator expressions.
  get_target_property(directory pmcc-pass BINARY_DIR)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND PROPERTY OBJECT_DEPENDS
    ${directory}/${CMAKE_SHARED_MODULE_PREFIX}pmcc-pass${CMAKE_SHARED_MODULE_SUFFIX})
endfunction()

function(pmcc_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  set(driver pmcc)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND sources ${source})
    if(source MATCHES "\\.(cc|cpp)$")
      set(driver pm++)
    endif()
  endforeach()
  list(TRANSFORM arg_LINK REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE libraries)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_custom_command(OUTPUT ${program}
    COMMAND ${PROJECT_BINARY_DIR}/llvm-pass/${driver} -O2 -Wall -Wextra -Werror ${sources} ${libraries} -o ${program}
    DEPENDS ${sources} ${arg_LINK} pmcc-pass pm ${PROJECT_SOURCE_DIR}/include/libpm.h VERBATIM)
  add_custom_target(build_${name} ALL DEPENDS ${program})
endfunction()

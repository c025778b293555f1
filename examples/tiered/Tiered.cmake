# tiered_generate(TARGET HEADER... [OPTIONS option...]): TARGET can include NAME.durable.hpp for each annotated
# NAME.hpp. The options are those of `pm-tier generate`.
function(tiered_generate target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS")
  foreach(header IN LISTS arg_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH header NORMALIZE)
    cmake_path(GET header STEM name)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.durable.hpp)
    add_custom_command(OUTPUT ${output} DEPENDS ${header} pm_tier
      COMMAND pm_tier generate ${header} -o ${output} ${arg_OPTIONS} --
              -I${PROJECT_SOURCE_DIR}/examples VERBATIM)
    list(APPEND outputs ${output})
  endforeach()
  add_custom_target(${target}_durable DEPENDS ${outputs})
  add_dependencies(${target} ${target}_durable)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_include_directories(${target} INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
  else()
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
  endif()
endfunction()

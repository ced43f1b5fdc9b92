# Thin wrappers over LLVM's CMake functions, so that every library, tool and test
# of the project is declared in the same way and links MLIR in one way only.

# add_attnfuse_library(NAME sources... [DEPENDS targets...] [LINK_LIBS libs...]
#                      [MLIR_LIBS libs...])
# LINK_LIBS names libraries of this project. MLIR_LIBS names upstream ones,
# which resolve to libMLIR.so.
function(add_attnfuse_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS;MLIR_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  set_property(TARGET ${name} PROPERTY POSITION_INDEPENDENT_CODE ON)
  set_property(GLOBAL APPEND PROPERTY ATTNFUSE_LIBS ${name})
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  if(ARG_MLIR_LIBS)
    mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR_LIBS})
    target_link_libraries(${name} PUBLIC LLVM)
  endif()
  # The name that it has for who finds the package, in this build too.
  add_library(AttnFuse::${name} ALIAS ${name})
  if(ATTNFUSE_INSTALL)
    install(TARGETS ${name} EXPORT AttnFuseTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

# add_attnfuse_tool(NAME sources... [LINK_LIBS libs...] [MLIR_LIBS libs...])
function(add_attnfuse_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS;MLIR_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  if(ARG_MLIR_LIBS)
    mlir_target_link_libraries(${name} PRIVATE ${ARG_MLIR_LIBS})
    target_link_libraries(${name} PRIVATE LLVM)
  endif()
  set_property(GLOBAL APPEND PROPERTY ATTNFUSE_TOOLS ${name})
  if(ATTNFUSE_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# attnfuse_link_archives(TARGET)
# Links TARGET against the project's libraries and LLVM's archives by path, dead
# sections dropped, so that it loads nothing but libc and libm. The targets cannot
# be linked instead: their interfaces name the shared libraries.
function(attnfuse_link_archives target)
  get_property(libs GLOBAL PROPERTY ATTNFUSE_LIBS)
  add_dependencies(${target} ${libs})
  list(TRANSFORM libs REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  file(GLOB archives "${LLVM_LIBRARY_DIR}/libMLIR*.a" "${LLVM_LIBRARY_DIR}/libLLVM*.a")
  list(FILTER archives EXCLUDE REGEX "CAPI|Test|Fuzz|gtest|TableGen|TestingSupport|MlirOptMain")
  find_library(ATTNFUSE_STATIC_Z NAMES libz.a REQUIRED)
  find_library(ATTNFUSE_STATIC_ZSTD NAMES libzstd.a REQUIRED)
  target_link_options(${target} PRIVATE
    -Wl,--gc-sections -Wl,--strip-all -static-libstdc++ -static-libgcc)
  # LINK_DEPENDS: paths inside a group are no files to CMake.
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${libs})
  target_link_libraries(${target} PRIVATE
    -Wl,--start-group ${libs} ${archives} -Wl,--end-group
    ${ATTNFUSE_STATIC_ZSTD} ${ATTNFUSE_STATIC_Z} m dl pthread)
endfunction()

# add_attnfuse_portable_tool(NAME sources...)
# The tool of that name once more, for machines without LLVM: the target
# NAME-portable, in portable/ of the build folder.
function(add_attnfuse_portable_tool name)
  set(target ${name}-portable)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
  llvm_update_compile_flags(${target})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable OUTPUT_NAME ${name})
  attnfuse_link_archives(${target})
endfunction()

# add_attnfuse_portable_library(NAME LIBRARY EXPORTS VERSION_SCRIPT)
# libNAME.so, for machines without LLVM, in lib/ of the build folder: what the
# version script names of LIBRARY and all that it needs, the rest hidden.
function(add_attnfuse_portable_library name library)
  cmake_parse_arguments(ARG "" "EXPORTS" "" ${ARGN})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "// Everything comes from ${library}.\n")
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_EXPORTS})
  add_library(${name}-shared SHARED ${source})
  set_target_properties(${name}-shared PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib OUTPUT_NAME ${name}
    LINK_DEPENDS ${exports})
  target_link_options(${name}-shared PRIVATE
    -Wl,--version-script,${exports} -Wl,--build-id=sha1 -Wl,-z,defs)
  target_link_libraries(${name}-shared PRIVATE
    -Wl,--whole-archive $<TARGET_FILE:${library}> -Wl,--no-whole-archive)
  attnfuse_link_archives(${name}-shared)
  set_property(GLOBAL APPEND PROPERTY ATTNFUSE_TOOLS ${name}-shared)
  if(ATTNFUSE_INSTALL)
    install(TARGETS ${name}-shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

# add_attnfuse_unittest(NAME sources... [LINK_LIBS libs...] [MLIR_LIBS libs...])
# A GoogleTest program; NAME ends in `Tests`, by which lit finds it. It runs as
# part of check-attnfuse.
function(add_attnfuse_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS;MLIR_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unittests)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} GTest::gtest GTest::gtest_main)
  if(ARG_MLIR_LIBS)
    mlir_target_link_libraries(${name} PRIVATE ${ARG_MLIR_LIBS})
    target_link_libraries(${name} PRIVATE LLVM)
  endif()
  set_property(GLOBAL APPEND PROPERTY ATTNFUSE_UNITTESTS ${name})
endfunction()

# add_attnfuse_plugin(NAME sources... [LINK_LIBS libs...] [MLIR_LIBS libs...])
# A module that tools of MLIR load: lib/NAME.so, in build and install tree.
function(add_attnfuse_plugin name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS;MLIR_LIBS" ${ARGN})
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  set_target_properties(${name} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  # Nothing but its entry points: the tool may know symbols of the same names.
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  mlir_target_link_libraries(${name} PRIVATE ${ARG_MLIR_LIBS})
  target_link_libraries(${name} PRIVATE LLVM)
  set_property(GLOBAL APPEND PROPERTY ATTNFUSE_TOOLS ${name})
  if(ATTNFUSE_INSTALL)
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

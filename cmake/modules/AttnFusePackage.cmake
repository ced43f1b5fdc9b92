# The package that find_package(AttnFuse) finds in the build tree (in the folder
# cmake of it) and, unless the project is part of another one, in the install tree.
# Libraries and tools add themselves to the latter where they are declared.
include(CMakePackageConfigHelpers)

# Everything at once, which is what attnfuse/InitAll.h registers.
get_property(libs GLOBAL PROPERTY ATTNFUSE_LIBS)
add_library(AttnFuse INTERFACE)
target_link_libraries(AttnFuse INTERFACE ${libs})
add_library(AttnFuse::AttnFuse ALIAS AttnFuse)

write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/AttnFuseConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
get_property(shared_libs GLOBAL PROPERTY ATTNFUSE_SHARED_LIBS)
export(TARGETS AttnFuse ${libs} ${shared_libs} NAMESPACE AttnFuse::
  FILE ${PROJECT_BINARY_DIR}/cmake/AttnFuseTargets.cmake)
configure_file(${PROJECT_SOURCE_DIR}/cmake/modules/AttnFuseConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/AttnFuseConfig.cmake @ONLY)
if(NOT ATTNFUSE_INSTALL)
  return()
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/attnfuse ${PROJECT_SOURCE_DIR}/include/attnfuse-c
                  ${PROJECT_BINARY_DIR}/include/attnfuse
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "*.def" PATTERN "*.td"
                 PATTERN "CMakeFiles" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/attnfuse)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attnfuse)
install(TARGETS AttnFuse EXPORT AttnFuseTargets)
install(EXPORT AttnFuseTargets NAMESPACE AttnFuse:: DESTINATION ${package_dir})
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/AttnFuseConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/AttnFuseConfigVersion.cmake
  DESTINATION ${package_dir})

# The install tree, and the package that find_package(AttnFuse) finds in it.
# Libraries and tools add themselves where they are declared.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/attnfuse ${PROJECT_BINARY_DIR}/include/attnfuse
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "*.td" PATTERN "CMakeFiles" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/attnfuse)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Everything at once, which is what attnfuse/InitAll.h registers.
get_property(libs GLOBAL PROPERTY ATTNFUSE_LIBS)
add_library(AttnFuse INTERFACE)
target_link_libraries(AttnFuse INTERFACE ${libs})
install(TARGETS AttnFuse EXPORT AttnFuseTargets)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attnfuse)
install(EXPORT AttnFuseTargets NAMESPACE AttnFuse:: DESTINATION ${package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/modules/AttnFuseConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/AttnFuseConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/AttnFuseConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/AttnFuseConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/AttnFuseConfigVersion.cmake
  DESTINATION ${package_dir})

# cmake --install: the program, the library with its headers, pkg-config and CMake packages, manual pages, completion for
# bash, the systemd unit. Users may move the installed folder. `cpack` makes a .deb of the same files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/graphwire)
install(TARGETS graphwire-cmd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS graphwire EXPORT graphwire LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/graphwire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# graphwire.pc names the prefix relative to its own folder, so that it stays valid when the installed folder is moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/graphwire.pc.in graphwire.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/graphwire.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(EXPORT graphwire NAMESPACE graphwire:: FILE graphwire-config.cmake DESTINATION ${package_folder})
write_basic_package_version_file(graphwire-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/graphwire-config-version.cmake DESTINATION ${package_folder})

# The program prints the text of most manual pages and of the completion; those of section 7 are in docs/man7.
file(GLOB headers CONFIGURE_DEPENDS include/graphwire/*.h)
list(REMOVE_ITEM headers ${PROJECT_SOURCE_DIR}/include/graphwire/graphwire.h)
file(GLOB manual_scripts CONFIGURE_DEPENDS cmake/*.awk cmake/manuals.sh docs/man7/*.7)
add_custom_command(
  OUTPUT manuals/graphwire.bash
  COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/manuals.sh $<TARGET_FILE:graphwire-cmd> ${PROJECT_VERSION} manuals
          ${PROJECT_SOURCE_DIR}/include/graphwire/graphwire.h ${headers}
  DEPENDS graphwire-cmd ${PROJECT_SOURCE_DIR}/include/graphwire/graphwire.h ${headers} ${manual_scripts}
  COMMENT "Manual pages" VERBATIM)
add_custom_target(manuals ALL DEPENDS manuals/graphwire.bash)
install(DIRECTORY ${PROJECT_BINARY_DIR}/manuals/man1 ${PROJECT_BINARY_DIR}/manuals/man3 ${PROJECT_BINARY_DIR}/manuals/man7
        DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${PROJECT_BINARY_DIR}/manuals/graphwire.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME graphwire)

install(FILES deploy/systemd/graphwire@.service DESTINATION lib/systemd/system)
install(FILES README.md LICENSE CHANGELOG.md SECURITY.md UPGRADING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES examples/minibatch.c examples/debian_packages.py DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

# A Debian package: dpkg-shlibdeps derives its dependencies from the symbols. deb.cmake checks that cpack has its tools.
set(CPACK_GENERATOR DEB)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/deb.cmake)
set(CPACK_PACKAGE_NAME graphwire)
set(CPACK_PACKAGE_VENDOR Graphwire)
set(CPACK_PACKAGE_CONTACT "The Graphwire developers <graphwire@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Partitioned graphs served to trainers of graph neural networks")
set(CPACK_PACKAGE_DESCRIPTION "A graph is cut into parts once; a server on each machine holds its part in memory;
trainers sample neighbours and fetch features from all of them, as if the graph
lay in their own memory: over RDMA where the host has it, else over TCP.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libibverbs1, librdmacm1, ibverbs-providers")
include(CPack)

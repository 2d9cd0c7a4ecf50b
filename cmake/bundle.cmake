# cmake --build … --target bundle: a tarball with one folder that runs on a bare host, in any place. It has the installed
# files. The portable wheel has the same program and library (python/CMakeLists.txt). Libraries that have an archive are linked in. The others are in the library's folder, and found relative to it
# (RPATH). All symbols are bound to the oldest versions of the C library (cmake/bundle/older_glibc.c).
set(GRAPHWIRE_BUNDLE_GLIBC 2.28 CACHE STRING "the oldest C library that the bundle runs on")

set(bundle_archives crypto uring xxhash z)
if(with_JEMALLOC)
  list(PREPEND bundle_archives jemalloc_pic)
endif()
foreach(name ${bundle_archives})
  find_library(BUNDLE_${name} lib${name}.a)
  if(NOT BUNDLE_${name})
    message(STATUS "lib${name}.a not found: no target \"bundle\"")
    return()
  endif()
  list(APPEND bundle_linked ${BUNDLE_${name}})
endforeach()

add_executable(older_glibc EXCLUDE_FROM_ALL cmake/bundle/older_glibc.c)
# Before 2.34, threads and dlopen are in separate libraries.
set(bundle_system -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--as-needed m)
foreach(layer ${layers})
  list(APPEND bundle_objects $<TARGET_OBJECTS:${layer}>)
endforeach()

add_executable(bundle-cmd EXCLUDE_FROM_ALL ${cmd_sources} ${bundle_objects} cmake/bundle/newer_calls.c cmake/bundle/start.c)
target_include_directories(bundle-cmd PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(bundle-cmd PRIVATE ${bundle_linked} PkgConfig::jansson ${metis} ${bundle_system})
target_link_options(bundle-cmd PRIVATE -Wl,--wrap=main)
set_target_properties(bundle-cmd PROPERTIES OUTPUT_NAME graphwire RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundle/bin
                      BUILD_RPATH "$ORIGIN/../lib" BUILD_RPATH_USE_ORIGIN ON)

add_library(bundle-library SHARED EXCLUDE_FROM_ALL ${library_objects} cmake/bundle/newer_calls.c)
target_link_libraries(bundle-library PRIVATE ${BUNDLE_crypto} ${BUNDLE_uring} ${BUNDLE_xxhash} PkgConfig::jansson ${bundle_system})
target_link_options(bundle-library PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libgraphwire.map -Wl,-z,nodelete
                    -Wl,--no-undefined -Wl,--exclude-libs,ALL)
set_target_properties(bundle-library PROPERTIES OUTPUT_NAME graphwire VERSION ${PROJECT_VERSION} SOVERSION 0
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundle/lib BUILD_RPATH "$ORIGIN")

# One program of the tests that test/slow/rdma/run needs (`rdma-tests NAME …`), since a bundle has no folder of a build.
find_library(BUNDLE_cmocka cmocka)
find_path(BUNDLE_cmocka_headers cmocka.h)
if(BUNDLE_cmocka AND BUNDLE_cmocka_headers AND with_VERBS)
  set(rdma_names calls deferred dynamic fork life once reads several verbs_trust versioned)
  list(TRANSFORM rdma_names PREPEND test_transport_)
  set(rdma_actors trainer stopped deadline connections)
  foreach(name ${rdma_names})
    list(APPEND rdma_sources test/conformance/${name}.c)
    set_property(SOURCE test/conformance/${name}.c APPEND PROPERTY COMPILE_DEFINITIONS main=main_${name})
  endforeach()
  foreach(name ${rdma_actors})
    list(APPEND rdma_sources test/slow/faults/${name}.c)
    list(APPEND rdma_names faults_${name})
    set_property(SOURCE test/slow/faults/${name}.c APPEND PROPERTY COMPILE_DEFINITIONS main=main_faults_${name})
  endforeach()
  list(TRANSFORM rdma_names REPLACE "(.+)" "TEST(\\1)" OUTPUT_VARIABLE rdma_table)
  string(JOIN " " rdma_table ${rdma_table})
  file(GLOB rdma_support CONFIGURE_DEPENDS test/support/*.c)
  add_executable(bundle-rdma EXCLUDE_FROM_ALL cmake/bundle/rdma_tests.c ${rdma_sources} ${bundle_objects}
                 cmake/bundle/newer_calls.c cmake/bundle/start.c)
  add_library(bundle-rdma-support STATIC EXCLUDE_FROM_ALL ${rdma_support})
  target_include_directories(bundle-rdma-support PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${BUNDLE_cmocka_headers})
  target_include_directories(bundle-rdma PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${BUNDLE_cmocka_headers})
  target_compile_definitions(bundle-rdma PRIVATE "RDMA_TESTS=${rdma_table}")
  target_compile_options(bundle-rdma PRIVATE -Wno-missing-prototypes)
  target_link_libraries(bundle-rdma PRIVATE bundle-rdma-support ${bundle_linked} ${BUNDLE_cmocka} PkgConfig::jansson ${metis} ${bundle_system})
  target_link_options(bundle-rdma PRIVATE -Wl,--wrap=main)
  set_target_properties(bundle-rdma PROPERTIES OUTPUT_NAME rdma-tests RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundle/bin
                        BUILD_RPATH "$ORIGIN/../../../lib" BUILD_RPATH_USE_ORIGIN ON)
  set(bundle_rdma ${BUNDLE_cmocka})
  set(bundle_tests bundle-rdma)
endif()

add_custom_target(
  bundle
  COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/bundle/bundle.sh ${PROJECT_BINARY_DIR} ${PROJECT_VERSION} ${GRAPHWIRE_BUNDLE_GLIBC}
          $<TARGET_FILE:older_glibc> ${metis} ${jansson_LINK_LIBRARIES} ${bundle_rdma}
  DEPENDS bundle-cmd bundle-library ${bundle_tests} older_glibc graphwire graphwire-cmd manuals
  COMMENT "Bundle" VERBATIM)

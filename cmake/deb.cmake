# cpack reads this file first: names the packages whose programs it needs for a .deb, where its own message would be
# "Problem compressing the directory".
if(CPACK_GENERATOR STREQUAL "DEB")
  find_program(file_program file)
  find_program(shlibdeps_program dpkg-shlibdeps)
  if(NOT file_program OR NOT shlibdeps_program)
    message(FATAL_ERROR "cpack -G DEB needs the packages dpkg-dev and file: deploy/packages.sh deb")
  endif()
endif()

# What is installed beside programs, libraries, units and config files (those are installed where they are built or kept).
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(section 1 5 7 8)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/packaging/man/*.${section})
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()
if(EXISTS ${CMAKE_SOURCE_DIR}/packaging/completion/ubctl.bash)
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/completion/ubctl.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ubctl)
endif()

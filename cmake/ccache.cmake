# ccache as the compiler launcher, set up so that a clean clone in another folder gets hits, precompiled
# header included. The settings travel in the launcher's command line: they hold whatever the user's own
# ccache configuration says, and need no environment.
find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache must see which precompiled header a file uses; debug information must not name the folder.
    add_compile_options(-fpch-preprocess -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
  endif()
endif()

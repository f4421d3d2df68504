# A text file as a C++ header: cmake -DINPUT= -DOUTPUT= -DNAME= -P embed_text.cmake
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "#pragma once\ninline constexpr char ${NAME}[] = R\"ptx(${text})ptx\";\n")

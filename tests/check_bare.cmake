# cmake -DROOT=<source folder> -DCC=<compiler> -DWORK=<scratch folder> -DVERSION_DIR=<folder of rrl/version.h>
#       [-DFOLDERS=...] -P check_bare.cmake
#
# What runs on a bare GPU machine compiles without MPI, HDF5, YAML and JSON headers: base, device, model, rollout and
# learn, but for the readers named here. Each source is compiled with headers of those names that end the compilation.
# A reader that needs its header no longer is an error too: the list stays short and true.
cmake_minimum_required(VERSION 3.25)
set(READERS # file and the one header it may need
    base/json.c=cjson/cJSON.h
    device/collective_mpi.c=mpi.h
    device/mpi_wait.c=mpi.h
    learn/checkpoint.c=cjson/cJSON.h
    model/adapter_file.c=cjson/cJSON.h
    model/merge.c=cjson/cJSON.h
    model/merge.c=cjson/cJSON.h
    model/model_config.c=cjson/cJSON.h)
set(HEADERS mpi.h hdf5.h yaml.h cjson/cJSON.h)
if(NOT FOLDERS)
  set(FOLDERS base device model rollout learn)
endif()

file(REMOVE_RECURSE ${WORK})
foreach(header IN LISTS HEADERS)
  file(WRITE ${WORK}/${header} "#error needs <${header}>\n")
endforeach()

set(failed)
set(seen)
set(count 0)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE sources RELATIVE ${ROOT}/src ${ROOT}/src/${folder}/*.c)
  foreach(source IN LISTS sources)
    math(EXPR count "${count} + 1")
    # kernels are written once for all instruction sets: the portable one needs no compiler option
    execute_process(COMMAND ${CC} -std=gnu17 -fsyntax-only -w -DRRL_ISA=portable -DRRL_ISA_portable -I${WORK}
                            -I${ROOT}/include -I${ROOT}/src -I${VERSION_DIR} ${ROOT}/src/${source}
                    RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE out)
    if(rc EQUAL 0)
      continue()
    endif()
    if(out MATCHES "needs <([^>]*)>")
      set(header ${CMAKE_MATCH_1})
      if("${source}=${header}" IN_LIST READERS)
        list(APPEND seen ${source}=${header})
      else()
        list(APPEND failed "src/${source} needs <${header}>: keep that in a reader, or in a folder above learn")
      endif()
    else()
      list(APPEND failed "src/${source} does not compile: ${out}")
    endif()
  endforeach()
endforeach()
if(count EQUAL 0)
  list(APPEND failed "no source found below ${ROOT}/src")
endif()
foreach(reader IN LISTS READERS)
  if(NOT reader IN_LIST seen)
    list(APPEND failed "${reader} stands in the list of readers and needs it no longer: remove it from check_bare.cmake")
  endif()
endforeach()
foreach(line IN LISTS failed)
  message(SEND_ERROR "${line}")
endforeach()
list(LENGTH seen readers)
if(NOT failed)
  message("${count} sources, ${readers} readers")
endif()

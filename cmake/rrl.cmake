# rrl_folder(base SOURCES a.c b.c NEEDS PkgConfig::X): the static library rrl_<folder> of src/<folder>.
# It links every library named in NEEDS publicly, so a test that links rrl_<folder> gets what it needs and no more.
function(rrl_folder name)
  cmake_parse_arguments(F "" "" "SOURCES;NEEDS" ${ARGN})
  add_library(rrl_${name} STATIC ${F_SOURCES})
  target_include_directories(rrl_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(rrl_${name} PUBLIC ${F_NEEDS})
endfunction()

# rrl_test(test_x NEEDS rrl_base LABELS unit [RANKS n] [TIMEOUT s] [ARGS ...] [DATA]): tests/<name>.c, a plain C program.
# Exit 0 = passed, 1 = failed, 77 = skipped. With RANKS it runs under mpirun.
function(rrl_test name)
  cmake_parse_arguments(T "" "RANKS;TIMEOUT" "NEEDS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${CMAKE_CURRENT_SOURCE_DIR}/${name}.c)
  target_link_libraries(${name} PRIVATE ${T_NEEDS} m)
  target_compile_definitions(${name} PRIVATE RRL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" RRL_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  if(T_RANKS)
    add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} -n ${T_RANKS} $<TARGET_FILE:${name}> ${T_ARGS})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${RRL_MPI_ENVIRONMENT}" PROCESSORS ${T_RANKS})
  else()
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# Open MPI refuses root and more ranks than cores unless told otherwise; the program itself never sets these.
set(RRL_MPI_ENVIRONMENT
    "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")

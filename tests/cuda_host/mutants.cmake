# Faults planted in the kernels, one a program: each must be found by the cases named. A mutant is a copy of one source in
# which one line is another, so the kernels themselves hold nothing for it.
#   mutant(NAME FILE CASES "text that stands there once" "what it becomes")
function(mutant name file cases text wrong)
  set(source ${PROJECT_SOURCE_DIR}/src/device/cuda/${file})
  file(READ ${source} content)
  string(FIND "${content}" "${text}" at)
  string(FIND "${content}" "${text}" last REVERSE)
  if(at EQUAL -1 OR NOT at EQUAL last)
    message(FATAL_ERROR "mutants.cmake, ${name}: the text must stand in ${file} exactly once: ${text}")
  endif()
  string(REPLACE "${text}" "${wrong}" content "${content}")
  set(changed ${CMAKE_CURRENT_BINARY_DIR}/mutants/${name}/${file})
  file(CONFIGURE OUTPUT ${changed} CONTENT "${content}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})

  add_executable(mutant_${name} ../test_cuda_ops.c ../ops_cases.c ../ops_written.c ${changed})
  set_source_files_properties(${changed} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++;-w") # a fault may leave a name unused
  target_include_directories(mutant_${name} BEFORE PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(mutant_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/..)
  target_compile_definitions(mutant_${name} PRIVATE RRL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(mutant_${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-std=gnu17>)
  target_link_libraries(mutant_${name} PRIVATE cuda_host m) # the library's own object of this file is not taken
  # found = the program says which check failed, or the emulator which barrier is wrong and aborts
  add_test(NAME cuda_mutant_${name} COMMAND sh -c "\"$0\" \"$@\" 2>&1; echo ended" $<TARGET_FILE:mutant_${name}> ${cases})
  set_tests_properties(cuda_mutant_${name} PROPERTIES LABELS "unit;cuda_host" TIMEOUT 120
                       PASS_REGULAR_EXPRESSION "checks failed;emulator: .*(barrier|shuffle)")
endfunction()

mutant(barrier attention.cu "attention" "                to[i] = from[i];\n        }\n        __syncthreads();"
       "                to[i] = from[i];\n        }")
mutant(index lora.cu "lora" "m->down[(k0 + k) * m->ld + c]" "m->down[(k0 + k) * m->r + c]")
mutant(parts lora.cu "lora_rows" "end = n0 + PART < of->y.cols ? n0 + PART : of->y.cols;" "end = of->y.cols;")
mutant(mask attention_backward.cu "attention_backward" "if (query >= rows || (own && key + j > row + query)) continue;"
       "if (query >= rows) continue;")
mutant(scale attention_backward.cu "attention_backward" "dp[i] = (s[i] * (dp[i] - delta)) * a->scale;"
       "dp[i] = s[i] * (dp[i] - delta);")
mutant(prefix attention.cu "attention" "? a->position[row0 + (at + query) / group] + 1 : 0;"
       "? a->position[row0 + (at + query) / group] : 0;")
mutant(rotation attention.cu "kv_write" "high = fmaf(high, c, first * s);" "high = fmaf(high, c, low * s);")
mutant(kept vocab.cu "many_ids" "z.logits + row * z.ld + v;" "z.logits + row * RRL_VOCAB_BLOCK + v;")
mutant(draw sampling.cu "sample" "threshold - before," "threshold,")
mutant(shared_barrier rows.cu "moves" "        __syncthreads(); /* before `same` is written again */\n" "")
mutant(divergent sampling.cu "sample" "    const int32_t id = s->id;\n    __syncthreads(); /* before it is written again */"
       "    const int32_t id = s->id;\n    if (warp == 0) __syncthreads();")

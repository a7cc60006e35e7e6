# cmake -DRRL=<program> -DCASE=<folder made by test_report> -P test_show.cmake: what `rrl show` and `rrl report` print of
# records whose content is known.
set(run ${CASE}/study/flip/level-0.4/seed-1/baseline)
set(wrong 0)

# Run the program; its exit code must be `code`, and what it prints must match every further argument.
function(expect code)
  cmake_parse_arguments(PARSE_ARGV 1 E "" "" "ARGS;PRINTS")
  execute_process(COMMAND ${RRL} ${E_ARGS} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT result EQUAL code)
    message("rrl ${E_ARGS}: exit code ${result}, expected ${code}\n${out}${err}")
    set(wrong 1 PARENT_SCOPE)
  endif()
  foreach(text IN LISTS E_PRINTS)
    string(FIND "${out}${err}" "${text}" at)
    if(at EQUAL -1)
      message("rrl ${E_ARGS}: \"${text}\" is not in\n${out}${err}")
      set(wrong 1 PARENT_SCOPE)
    endif()
  endforeach()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(same what a b)
  if(NOT "${a}" STREQUAL "${b}")
    message("${what}: ${a}, expected ${b}")
    set(wrong 1 PARENT_SCOPE)
  endif()
endfunction()

expect(0 ARGS show ${run} PRINTS "complete" "training, method baseline, arm flip, level 0.4, seed 1"
       "member 0: rule, none" "training: 2" "evaluation test: 4 questions, 8 completions"
       "  independent_accuracy             0.2500" "  reward_correctness_correlation   undefined")
expect(0 ARGS show ${run} --completion 2 PRINTS "completion 2 of 4, training: step 1, question 1, sample 0"
       "  Final answer: 2" "answer: wrong by the independent judge" "ensemble: reward missing" "(suppressed)")
expect(0 ARGS show --evaluation test ${run}/run.h5 --completion=7 PRINTS "completion 7 of 8, evaluation test: question 3"
       "member 0: rule, none: clean 0, reward 1, confidence 1, corrupted")
expect(2 ARGS show ${run} --completion 4 PRINTS "no completion 4; training has 4, counted from 0")
expect(2 ARGS show ${run} --completion 0 --evaluation x PRINTS "no evaluation \"x\"; there is 1, such as \"test\"")
expect(2 ARGS show ${run} --complete 0 PRINTS "unknown option --complete")
expect(3 ARGS show ${CASE}/nowhere PRINTS "nowhere")

# Lists: 6 of the 8 completions are wrong, and all of those were rewarded with 1.
expect(0 ARGS show ${run} --evaluation test --wrong PRINTS "6 of 8 completions match" "three                  1 wrong  1.000")
expect(0 ARGS show ${run} --evaluation test --right PRINTS "2 of 8 completions match" "one                    0 right  1.000")
expect(0 ARGS show ${run} --evaluation test --top-wrong 2 PRINTS "6 of 8 completions match, 2 are shown (--top-wrong)")
expect(0 ARGS show ${run} --evaluation test --question two --limit 1 PRINTS "2 of 8 completions match, 1 are shown (--limit)")
expect(0 ARGS show ${run} --evaluation test --disagreement 0.5 PRINTS "0 of 8 completions match")
expect(0 ARGS show ${run} --evaluation test --question three --wrong --json)
string(JSON matches GET "${out}" matches)
string(JSON completion GET "${out}" completions 0 completion)
string(JSON prompt GET "${out}" completions 0 prompt)
same(matches "${matches}" 1)
same(completion "${completion}" 5)
same(prompt "${prompt}" "Solve the problem. End with 'Final answer: <answer>'.\nProblem: three\nSolution:")
expect(2 ARGS show ${run} --right --wrong PRINTS "leave one out")
expect(2 ARGS show ${run} --disagreement nan PRINTS "expected a number of at least 0")
expect(2 ARGS show ${CASE}/study --wrong PRINTS "is a study")

expect(0 ARGS show --json ${run})
string(JSON accuracy GET "${out}" evaluations 0 metrics independent_accuracy)
string(JSON correlation TYPE "${out}" evaluations 0 metrics reward_correctness_correlation)
string(JSON updates GET "${out}" training updates)
same(accuracy "${accuracy}" 0.25)
same(correlation "${correlation}" NULL)
same(updates "${updates}" 2)

expect(0 ARGS show --json ${CASE}/study)
string(JSON status GET "${out}" conditions 2 status)
same(status "${status}" failed)
expect(0 ARGS show ${CASE}/study PRINTS "study of 3 conditions" "(the loss of step 7 is not finite)")
expect(2 ARGS show ${CASE}/study --completion 0 PRINTS "is a study")

# The digest is one line, the same for the folder and its file.
expect(0 ARGS show --digest ${run})
set(of_folder "${out}")
expect(0 ARGS show --digest ${run}/run.h5)
same(digest "${out}" "${of_folder}")
if(NOT of_folder MATCHES "^[0-9a-f]+\n$")
  message("digest: ${of_folder}")
  set(wrong 1)
endif()

expect(0 ARGS report ${CASE}/study PRINTS "robust kept it" "report/report.html")
expect(3 ARGS report ${CASE}/empty PRINTS "no record found below it")
expect(0 ARGS report --help PRINTS "usage: rrl report DIR" "example:")
if(wrong)
  message(FATAL_ERROR "rrl show or rrl report printed something else")
endif()

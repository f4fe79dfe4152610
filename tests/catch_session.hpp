// Runs the test cases of a program.
#pragma once

// Runs the cases that the arguments of the command line choose and returns the exit status of the program.
int run_tests(int argc, char** argv);

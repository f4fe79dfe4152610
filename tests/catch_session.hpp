// Runs the test cases of a program.
#pragma once

// Runs the test cases selected by the command line and returns the exit status of the program.
int run_tests(int argc, char** argv);

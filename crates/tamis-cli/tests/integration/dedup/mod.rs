//! `tamis dedup` as users run it: the real program, its output, its stderr and its exit status.

mod approximate;
mod bad_input;
mod inputs;
mod modes;
mod program;
mod state;
mod threads;
mod window;

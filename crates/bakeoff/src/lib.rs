//! Find out which model, prompt or agent is best, as a library.

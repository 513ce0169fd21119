//! Control characters and direction marks in what is printed.

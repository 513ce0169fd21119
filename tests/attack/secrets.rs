//! Passwords that a user gives are kept nowhere.

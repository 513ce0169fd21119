//! Requests to the web page.

//! Files of the object database from elsewhere, and websites served from hostile directories.

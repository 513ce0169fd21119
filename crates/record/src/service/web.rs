//! Web servers.

use super::adapter::{Adapter, UNKNOWN};

/// nginx; what listens at the usual ports of web servers is loaded alike, whichever it is.
pub const NGINX: Adapter = Adapter {
    name: "nginx",
    product: "nginx",
    loaded_as: Some("http"),
    ports: &[80, 8000, 8080, 8888],
    ..UNKNOWN
};

/// Apache's httpd.
pub const APACHE: Adapter = Adapter {
    name: "apache",
    product: "Apache",
    ..UNKNOWN
};

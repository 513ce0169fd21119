//! The listening socket: connections within bounds, requests past the guard.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::connections::{Activity, Connections};
use crate::guard::{self, Token};
use crate::pages;
use crate::routes;
use crate::site::{Options, Site};

/// Connections at a time; a browser opens six.
const CONNECTIONS: usize = 256;
/// Requests that are answered at a time; further ones wait.
const ANSWERS: usize = 32;
/// For the head of a request to arrive, also the next one on a connection that is kept.
const HEAD: Duration = Duration::from_secs(5);
/// For a request to be answered, its body included.
const REQUEST: Duration = Duration::from_secs(60);
/// For a connection to live; a browser makes a new one when it needs it.
const CONNECTION: Duration = Duration::from_secs(900);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;

/// Serves a socket that is bound already, behind the token, until told to stop.
pub fn run(
    listener: TcpListener,
    token: Token,
    again: bool,
    options: Options,
    stop: Arc<AtomicBool>,
) -> io::Result<()> {
    // Blocking work (reading runs) has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_all()
        .build()?;
    let port = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    let site = Arc::new(Site::new(options, token.base()));
    if !again {
        site.index.warm();
    }
    let guarded = Arc::new(Guarded {
        router: routes::router(site.clone()),
        token,
        port,
        answers: Semaphore::new(ANSWERS),
    });
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            () = accept(listener, guarded) => {}
            () = requested(stop) => {}
        }
        io::Result::Ok(())
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    site.jobs.end();
    Ok(())
}

/// Takes every connection at once: one that waited would wait for strangers who say nothing.
async fn accept(listener: tokio::net::TcpListener, guarded: Arc<Guarded>) {
    let connections = Connections::at_most(CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) if connections.make_room() => {
                let activity = Arc::new(Activity::default());
                let task = tokio::spawn(serve(stream, guarded.clone(), activity.clone()));
                connections.add(activity, task.abort_handle());
            }
            // Everybody is being answered: who comes now is better told at once.
            Ok(_) => {}
            Err(_) => {
                // Out of descriptors: a connection that ends will give one back.
                connections.make_room();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve(stream: tokio::net::TcpStream, guarded: Arc<Guarded>, activity: Arc<Activity>) {
    let service = hyper::service::service_fn(move |request| {
        let (guarded, asked) = (guarded.clone(), activity.begin());
        async move {
            let response = guarded.answer(request).await;
            drop(asked);
            response
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        // A client that has said all it has to say is answered still.
        .half_close(true)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks off or talks nonsense is answered by hyper, and is nobody's trouble.
    let _ = tokio::time::timeout(CONNECTION, connection).await;
}

/// The guard before the routes.
struct Guarded {
    router: Router,
    token: Token,
    port: u16,
    answers: Semaphore,
}

impl Guarded {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let mut response = match self.admit(request) {
            Ok(request) => {
                let answer = async {
                    let _place = self.answers.acquire().await;
                    self.router.clone().call(request).await
                };
                match tokio::time::timeout(REQUEST, answer).await {
                    Ok(Ok(response)) => response,
                    Err(_) => {
                        pages::plain(StatusCode::REQUEST_TIMEOUT, "The request took too long.")
                    }
                }
            }
            Err((status, sentence)) => pages::plain(status, sentence),
        };
        for (name, value) in guard::HEADERS {
            response.headers_mut().insert(name, value);
        }
        Ok(response.into_response())
    }

    /// The request without the token in its path, as the routes know it.
    fn admit(&self, request: Request<Incoming>) -> Result<Request<Body>, guard::Refusal> {
        guard::check(request.method(), request.headers(), self.port)?;
        let path = self.token.strip(request.uri().path()).ok_or((
            StatusCode::FORBIDDEN,
            "This address lacks the token. Open the address that “fingerpost serve” printed.",
        ))?;
        let query = request
            .uri()
            .query()
            .map_or(String::new(), |q| format!("?{q}"));
        let path = if path.is_empty() { "/" } else { path };
        let uri: Uri = format!("{path}{query}")
            .parse()
            .map_err(|_| (StatusCode::BAD_REQUEST, "The address is not one."))?;
        let (mut head, body) = request.into_parts();
        head.uri = uri;
        Ok(Request::from_parts(head, Body::new(body)))
    }
}

/// Returns when the flag is set. A signal handler may only set a flag, so it is looked at now and then.
async fn requested(stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

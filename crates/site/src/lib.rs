//! A web server for real use on loopback: a site from a directory or from an object database.
//!
//! hyper reads the requests. A few workers, each a thread with an event loop and a reader of its own, take connections
//! from one listener; bodies are read piece by piece while they are sent (`body`), so that memory depends on the number
//! of connections and not on what is served. A server that is put under load is another one, in the workloads.

mod answer;
mod body;
mod clients;
mod find;
mod request;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use body::Body;
use clients::{Client, Clients};
use find::Finder;
pub use find::Source;

/// Connections at a time, in all.
const CONNECTIONS: usize = 256;
/// For the head of a request to arrive, also the next one on a connection that is kept.
const HEAD: Duration = Duration::from_secs(15);
/// A client that takes nothing of an answer for this long is let go.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// How often a worker looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A listener on 127.0.0.1, and nowhere else.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Serves until `stop` says so; it is asked ten times a second.
pub fn serve(
    listener: &TcpListener,
    source: &Arc<Source>,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let count = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .clamp(2, 8);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for _ in 0..count {
            let (listener, source, ended) = (listener.try_clone()?, source.clone(), &ended);
            let worker = move || {
                let worked = work(listener, source, CONNECTIONS / count, ended);
                // Without one of them the others do not go on: what ended it is told.
                ended.store(true, Ordering::Relaxed);
                worked
            };
            // The others would serve on, and this scope never be left.
            let started = std::thread::Builder::new().spawn_scoped(scope, worker);
            workers.push(started.inspect_err(|_| ended.store(true, Ordering::Relaxed))?);
        }
        while !stop() && !ended.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        ended.store(true, Ordering::Relaxed);
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a worker of the server failed")))
        })
    })
}

/// One worker: an event loop with a reader of its own.
fn work(
    listener: TcpListener,
    source: Arc<Source>,
    most: usize,
    ended: &AtomicBool,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (finder, clients) = (Rc::new(Finder::new(source)?), Rc::new(Clients::new(most)));
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        drop(tokio::task::spawn_local(converse(stream, finder.clone(), clients.clone())));
                    }
                    // Out of descriptors: a connection that ends will give one back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                _ = look.tick() => {
                    if ended.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    clients.sweep(IDLE);
                }
            }
        }
    })
}

/// One connection: requests and answers in turn.
async fn converse(stream: TcpStream, finder: Rc<Finder>, clients: Rc<Clients>) {
    let client = clients.join();
    let _ = stream.set_nodelay(true);
    let mine = client.clone();
    let service = hyper::service::service_fn(move |request| {
        let (finder, client) = (finder.clone(), mine.clone());
        async move { Ok::<_, Infallible>(reply(&finder, &client, &request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        // A client that has said all it has to say is answered still.
        .half_close(true)
        .max_buf_size(HEAD_BYTES)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A client that breaks off or talks nonsense is answered by hyper, and is nobody's trouble.
        _ = connection => {}
        () = client.told_to_go() => {}
    }
    clients.leave(&client);
}

async fn reply(
    finder: &Rc<Finder>,
    client: &Rc<Client>,
    request: &hyper::Request<Incoming>,
) -> Response<Body> {
    client.active();
    match request::read(request) {
        Ok(request) => answer::answer(finder, &request, client)
            .await
            .unwrap_or_else(|_| answer::plain(StatusCode::INTERNAL_SERVER_ERROR)),
        Err(status) => answer::plain(status),
    }
}

#[cfg(test)]
mod tests;

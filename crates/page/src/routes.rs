//! Which page answers which address.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{
    DefaultBodyLimit, Form, FromRequest, FromRequestParts, Multipart, Path, Query, Request, State,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use fingerpost_record::guard;
use fingerpost_record::load::MAX_BYTES;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::pages::{
    self, Answer, calculator, compare, docs, history, import, kept, list, measure,
    reference as published, run, services, sweeps,
};
use crate::site::Site;

/// Bytes of a form.
const FORM: usize = 64 << 10;

/// The site as handlers get it.
type Shared = State<Arc<Site>>;

/// Every address.
pub fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", asked(list::page))
        .route("/run/{id}", named(run::page))
        .route(
            "/run/{id}/record",
            download("json", "application/json", run::record),
        )
        .route(
            "/run/{id}/report",
            download("html", "text/html; charset=utf-8", run::report),
        )
        .route(
            "/run/{id}/rows",
            download("csv", "text/csv; charset=utf-8", run::rows),
        )
        .route("/run/{id}/words", post(describe))
        .route("/run/{id}/remove", post(remove))
        .route(
            "/compare",
            asked(|site, pairs: &Vec<_>| compare::page(site, pairs)),
        )
        .route("/history", asked(history::page))
        .route("/references", page(|site| Ok(published::list(site))))
        .route("/reference/{name}", named(published::system))
        .route("/replay/{name}", named(published::replayed))
        .route(
            "/measure",
            page(|site| Ok(measure::page(site, None, &measure::Wanted::default()))).post(begin),
        )
        .route(
            "/services",
            page(|site| Ok(services::page(site, None))).post(explain),
        )
        .route("/sweeps", page(sweeps::list))
        .route("/sweep/{number}", named(sweeps::one))
        .route(
            "/sweep/{number}/report",
            download("html", "text/html; charset=utf-8", sweeps::report),
        )
        .route("/sweep/{number}/host/{host}", get(sweep_host))
        .route("/measure/state", get(state))
        .route("/measure/sofar", get(so_far))
        .route("/measure/stop", post(stop))
        .route(
            "/zerofill",
            asked(|site, fields| Ok(calculator::page(site, fields))),
        )
        .route("/zerofill/solved", get(solved))
        .route("/zerofill/measure", post(take_timings))
        .route(
            "/import",
            page(|site| Ok(import::page(site, None)))
                .post(upload)
                .layer(DefaultBodyLimit::max(MAX_BYTES as usize + FORM)),
        )
        .route("/docs", page(|site| docs::list(&site.base)))
        .route(
            "/docs/{name}",
            named(|site, name| docs::page(&site.base, name)),
        )
        .route("/static/{file}", get(file))
        .fallback(nothing)
        .layer(DefaultBodyLimit::max(FORM))
        .with_state(site)
}

/// A page whose address is all that is asked.
fn page(of: fn(&Site) -> Answer) -> MethodRouter<Arc<Site>> {
    get(move |State(site): Shared| make(site, of))
}

/// A page of what the address names.
fn named(of: fn(&Site, &str) -> Answer) -> MethodRouter<Arc<Site>> {
    get(move |State(site): Shared, Path(name): Path<String>| {
        make(site, move |site| of(site, &name))
    })
}

/// A page of what the query asks for.
fn asked<T: DeserializeOwned + Send + 'static>(
    of: fn(&Site, &T) -> Answer,
) -> MethodRouter<Arc<Site>> {
    get(move |State(site): Shared, Asked(wanted): Asked<T>| {
        make(site, move |site| of(site, &wanted))
    })
}

/// A file of what the address names.
fn download(
    ending: &'static str,
    kind: &'static str,
    content: fn(&Site, &str) -> Result<Vec<u8>, pages::Wrong>,
) -> MethodRouter<Arc<Site>> {
    get(move |State(site): Shared, Path(id): Path<String>| {
        // An id is letters, digits and a dash once it is known to be one.
        let plain = id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "");
        let disposition = format!("attachment; filename=\"fingerpost-{plain}.{ending}\"");
        made(site, move |site| match content(site, &id) {
            Ok(bytes) => (
                [
                    (header::CONTENT_TYPE, kind.to_owned()),
                    (header::CONTENT_DISPOSITION, disposition),
                ],
                bytes,
            )
                .into_response(),
            Err(wrong) => pages::respond(&site.base, Err(wrong)),
        })
    })
}

/// Makes an answer where waiting for the disk holds nobody up.
async fn made(
    site: Arc<Site>,
    answer: impl FnOnce(&Site) -> Response + Send + 'static,
) -> Response {
    let made = tokio::task::spawn_blocking(move || answer(&site)).await;
    // It was not begun, because the page ends.
    made.unwrap_or_else(|_| pages::plain(StatusCode::SERVICE_UNAVAILABLE, "The page is ending."))
}

/// Makes a page.
async fn make(site: Arc<Site>, page: impl FnOnce(&Site) -> Answer + Send + 'static) -> Response {
    made(site, move |site| pages::respond(&site.base, page(site))).await
}

/// What the query says; an answer that says what is wrong with it.
struct Asked<T>(T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Site>> for Asked<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Response> {
        let wrong = |_| {
            pages::respond(
                &site.base,
                Err(pages::bad(
                    "The address has a part that this page does not understand.",
                )),
            )
        };
        Query::from_request_parts(parts, site)
            .await
            .map(|Query(asked)| Asked(asked))
            .map_err(wrong)
    }
}

/// What a form says; an answer that says what is wrong with it.
struct Filled<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<Site>> for Filled<T> {
    type Rejection = Response;

    async fn from_request(request: Request, site: &Arc<Site>) -> Result<Self, Response> {
        let wrong = |_| {
            pages::respond(
                &site.base,
                Err(pages::bad("The form is not the one of this page.")),
            )
        };
        Form::from_request(request, site)
            .await
            .map(|Form(filled)| Filled(filled))
            .map_err(wrong)
    }
}

async fn describe(
    State(site): Shared,
    Path(id): Path<String>,
    Filled(wanted): Filled<kept::Wanted>,
) -> Response {
    let to = format!("{}/run/{id}", site.base);
    go_on(site, to, move |site| {
        kept::describe(site, &id, wanted).map_err(Err)
    })
    .await
}

async fn remove(State(site): Shared, Path(id): Path<String>) -> Response {
    let to = format!("{}/", site.base);
    go_on(site, to, move |site| kept::remove(site, &id).map_err(Err)).await
}

/// Does what a form asks for, and goes on to another page, or to the one that says what is wrong.
async fn go_on(
    site: Arc<Site>,
    to: String,
    asked: impl FnOnce(&Site) -> Result<(), Answer> + Send + 'static,
) -> Response {
    made(site, move |site| {
        asked(site).map_or_else(
            |wrong| pages::respond(&site.base, wrong),
            |()| redirect(&to),
        )
    })
    .await
}

fn redirect(to: &str) -> Response {
    Redirect::to(to).into_response()
}

async fn sweep_host(State(site): Shared, Path((number, host)): Path<(String, String)>) -> Response {
    make(site, move |site| sweeps::host(site, &number, &host)).await
}

async fn begin(State(site): Shared, Filled(wanted): Filled<measure::Wanted>) -> Response {
    let to = format!("{}/measure", site.base);
    go_on(site, to, move |site| {
        measure::start(site, &wanted).map_err(|wrong| Ok(measure::page(site, Some(wrong), &wanted)))
    })
    .await
}

async fn explain(State(site): Shared, Filled(wanted): Filled<services::Wanted>) -> Response {
    let to = format!("{}/services", site.base);
    go_on(site, to, move |site| {
        services::start(site, &wanted).map_err(|wrong| Ok(services::page(site, Some(wrong))))
    })
    .await
}

async fn state(State(site): Shared) -> Response {
    let state = serde_json::to_vec(&site.jobs.state()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], state).into_response()
}

/// The part of the page that shows what is known so far.
async fn so_far(State(site): Shared) -> Response {
    part(site, |site| {
        site.jobs
            .state()
            .map_or_else(String::new, |s| measure::so_far(&s).into_string())
    })
    .await
}

/// The part of the calculator that shows what follows from its fields.
async fn solved(State(site): Shared, Asked(fields): Asked<calculator::Fields>) -> Response {
    part(site, move |_| calculator::part(&fields).into_string()).await
}

/// A part of a page, which the script puts into it.
async fn part(site: Arc<Site>, text: impl FnOnce(&Site) -> String + Send + 'static) -> Response {
    made(site, move |site| {
        let text = text(site);
        (
            [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
            guard::text(text.as_bytes()),
        )
            .into_response()
    })
    .await
}

/// Which measurement is to be stopped; without a number, whichever runs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stopped {
    job: Option<u64>,
}

async fn stop(State(site): Shared, Asked(stopped): Asked<Stopped>, headers: HeaderMap) -> Response {
    site.jobs.stop(stopped.job);
    if wants_json(&headers) {
        StatusCode::NO_CONTENT.into_response()
    } else {
        redirect(&format!("{}/measure", site.base))
    }
}

async fn take_timings(
    State(site): Shared,
    headers: HeaderMap,
    Filled(wanted): Filled<calculator::Timing>,
) -> Response {
    let started = calculator::start(&site, &wanted);
    let json = wants_json(&headers);
    match started {
        Ok(job) if json => axum_json(StatusCode::OK, &serde_json::json!({ "job": job })),
        Ok(_) => redirect(&format!("{}/zerofill?measured=1", site.base)),
        Err(wrong) if json => axum_json(
            wrong.status,
            &serde_json::json!({ "error": wrong.sentence }),
        ),
        Err(wrong) => pages::respond(&site.base, Err(wrong)),
    }
}

fn wants_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .is_some_and(|a| a.as_bytes().starts_with(b"application/json"))
}

fn axum_json(status: StatusCode, value: &serde_json::Value) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}

async fn upload(
    State(site): Shared,
    parts: Result<Multipart, axum::extract::multipart::MultipartRejection>,
) -> Response {
    let wrong =
        |site: &Site, sentence| pages::respond(&site.base, Ok(import::page(site, Some(sentence))));
    let Ok(_alone) = site.imports.try_acquire() else {
        return wrong(
            &site,
            "Another file is being imported; try again in a moment.".into(),
        );
    };
    let file = match parts {
        Ok(parts) => first_file(parts).await,
        Err(_) => Err("The upload is not a form with a file.".to_owned()),
    };
    let taken = move |site: &Site| {
        let id = file.and_then(|(name, bytes)| import::take(site, &name, &bytes));
        id.map_or_else(
            |sentence| wrong(site, sentence),
            |id| redirect(&format!("{}/run/{id}", site.base)),
        )
    };
    made(site.clone(), taken).await
}

/// The first file of an upload, with what it is called.
async fn first_file(mut parts: Multipart) -> Result<(String, Bytes), String> {
    let broken = |e: axum::extract::multipart::MultipartError| match e.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!(
                "The file is larger than the {} MiB that a run may have.",
                MAX_BYTES >> 20
            )
        }
        _ => "The upload ended early, or is not a form with a file.".to_owned(),
    };
    while let Some(field) = parts.next_field().await.map_err(broken)? {
        if let Some(name) = field.file_name().map(str::to_owned) {
            return Ok((name, field.bytes().await.map_err(broken)?));
        }
    }
    Err("No file was chosen.".to_owned())
}

async fn file(Path(name): Path<String>) -> Response {
    pages::file(&name)
}

async fn nothing(State(site): Shared) -> Response {
    pages::respond(
        &site.base,
        Err(pages::Wrong::none("There is no such page.")),
    )
}

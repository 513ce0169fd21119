//! A small WebDriver client (https://www.w3.org/TR/webdriver2/): Chromium under chromedriver, with its console and its
//! network.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::time::{Duration, Instant};

use fingerpost_sys::child;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The browsers of this process: they use much memory and CPU time, so that there are no more at a time. A start takes
/// CPU time, too, so that a test leaves its browser to the next.
static KEPT: [Mutex<Option<Browser>>; 2] = [Mutex::new(None), Mutex::new(None)];
/// Who comes when all are taken waits for one of them in turn.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A browser for as long as this is kept.
pub struct Taken(MutexGuard<'static, Option<Browser>>);

/// Takes a browser that shows nothing and has no cookies; one is started where none was left.
pub fn take() -> Taken {
    let free = KEPT.iter().find_map(|kept| kept.try_lock().ok());
    let next = || NEXT.fetch_add(1, Ordering::Relaxed) % KEPT.len();
    let mut kept =
        free.unwrap_or_else(|| KEPT[next()].lock().unwrap_or_else(PoisonError::into_inner));
    kept.get_or_insert_with(Browser::start);
    Taken(kept)
}

impl std::ops::Deref for Taken {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        self.0.as_ref().expect("taken with a browser")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0 = None;
        } else {
            self.clear();
        }
    }
}

/// Ends the browsers with the process, which drops no statics.
extern "C" fn end_all() {
    for kept in &KEPT {
        kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A browser under a driver, ended with the value.
pub struct Browser {
    driver: Child,
    session: String,
    _profile: TempDir,
}

/// Starts a driver and gives it with its port. The thread that starts it lives as long, for the driver ends with that
/// thread.
fn driver() -> (Child, u16) {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut command = Command::new("chromedriver");
        command
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut driver = child::die_with_parent(&mut command)
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().expect("chromedriver tells its port").unwrap();
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').parse::<u16>().unwrap();
            }
        };
        send.send((driver, port)).expect("who asked waits");
        // A pipe that nobody reads would fill.
        lines.for_each(drop);
    });
    receive.recv().expect("chromedriver starts")
}

impl Browser {
    /// Starts one.
    #[allow(unsafe_code)]
    fn start() -> Browser {
        static END: Once = Once::new();
        // SAFETY: the function is one of this program, which stays loaded, and does not unwind into C: Rust aborts
        // there.
        END.call_once(|| assert_eq!(unsafe { libc::atexit(end_all) }, 0));
        let (driver, port) = driver();
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            // Pages and the checker run once: machine code for them takes longer to make than it then gains.
            "--js-flags=--no-opt",
            "--window-size=1200,900",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let base = format!("http://127.0.0.1:{port}/session");
        let answer = send(minreq::post(&base), Some(&wanted));
        let session = format!(
            "{base}/{}",
            answer["sessionId"]
                .as_str()
                .unwrap_or_else(|| panic!("no session: {answer}"))
        );
        Browser {
            driver,
            session,
            _profile: profile,
        }
    }

    fn post(&self, what: &str, body: Value) -> Value {
        send(
            minreq::post(format!("{}/{what}", self.session)),
            Some(&body),
        )
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&self, address: &str) {
        self.post("url", json!({ "url": address }));
    }

    /// What a script returns.
    pub fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({ "script": script, "args": [] }))
    }

    /// What a script gives to the function in its last argument.
    pub fn run_async(&self, script: &str) -> Value {
        self.post("execute/async", json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns true.
    #[track_caller]
    pub fn until(&self, what: &str, script: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.run(script) != json!(true) {
            assert!(
                Instant::now() < deadline,
                "not within {PATIENCE:?}: {what}; the page says: {}",
                self.text("main")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn element(&self, selector: &str) -> String {
        let found = self.post(
            "element",
            json!({ "using": "css selector", "value": selector }),
        );
        let id = found
            .as_object()
            .and_then(|o| o.values().next())
            .and_then(Value::as_str);
        id.unwrap_or_else(|| panic!("no {selector} in the page: {found}"))
            .to_owned()
    }

    /// Clicks on what a selector finds, as a person does.
    pub fn click(&self, selector: &str) {
        let answer = self.post(
            &format!("element/{}/click", self.element(selector)),
            json!({}),
        );
        assert!(answer.is_null(), "cannot click {selector}: {answer}");
    }

    /// Replaces a field's text, key by key.
    pub fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/clear"), json!({}));
        let answer = self.post(&format!("element/{element}/value"), json!({ "text": text }));
        assert!(answer.is_null(), "cannot type into {selector}: {answer}");
    }

    /// Gives a file field its file.
    pub fn choose_file(&self, selector: &str, path: &Path) {
        self.post(
            &format!("element/{}/value", self.element(selector)),
            json!({ "text": path.to_str().unwrap() }),
        );
    }

    /// Presses keys on what has the focus; `\u{e004}` is the tabulator.
    pub fn keys(&self, keys: &str) {
        let presses: Vec<Value> = keys
            .chars()
            .flat_map(|k| {
                ["keyDown", "keyUp"].map(|t| json!({ "type": t, "value": k.to_string() }))
            })
            .collect();
        self.post(
            "actions",
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": presses }] }),
        );
    }

    /// The text that a person sees there; empty where there is no such element.
    pub fn text(&self, selector: &str) -> String {
        let found = self.run(&format!(
            "return document.querySelector({})?.innerText ?? ''",
            json!(selector)
        ));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// The address that is shown.
    pub fn address(&self) -> String {
        self.run("return location.href")
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post(
            "goog/cdp/execute",
            json!({ "cmd": command, "params": parameters }),
        )
    }

    /// On a screen or in print, light or dark, and a width.
    pub fn look(&self, medium: &str, scheme: &str, width: u32) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({ "media": medium, "features": features }),
        );
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", size);
    }

    /// As it was started, for the next test: no page, no cookies, its own look, nothing in the logs.
    fn clear(&self) {
        self.open("about:blank");
        self.devtools("Network.clearBrowserCookies", json!({}));
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({ "media": "", "features": [] }),
        );
        self.devtools("Emulation.clearDeviceMetricsOverride", json!({}));
        self.console();
        self.requests();
    }

    /// A picture of the whole page.
    pub fn picture(&self, file: &Path) {
        let shot = self.devtools(
            "Page.captureScreenshot",
            json!({ "format": "png", "optimizeForSpeed": true, "captureBeyondViewport": true, "clip": self.whole() }),
        );
        let data = shot["data"]
            .as_str()
            .unwrap_or_else(|| panic!("no picture: {shot}"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, base64(data)).unwrap();
    }

    fn whole(&self) -> Value {
        let size = self.run(
            "return [document.documentElement.clientWidth, Math.min(document.documentElement.scrollHeight, 6000)]",
        );
        json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 })
    }

    /// Everything that the console said since it was last asked; the browser's own notes on failed requests are in it.
    pub fn console(&self) -> Vec<String> {
        let log = self.post("se/log", json!({ "type": "browser" }));
        let entries = log.as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .map(|e| {
                format!(
                    "{}: {}",
                    e["level"].as_str().unwrap_or("?"),
                    e["message"].as_str().unwrap_or("?")
                )
            })
            .collect()
    }

    /// The addresses of all requests since it was last asked.
    pub fn requests(&self) -> Vec<String> {
        let log = self.post("se/log", json!({ "type": "performance" }));
        let message = |e: &Value| serde_json::from_str::<Value>(e["message"].as_str()?).ok();
        let sent = |m: &Value| {
            let m = &m["message"];
            (m["method"] == "Network.requestWillBeSent").then(|| {
                m["params"]["request"]["url"]
                    .as_str()
                    .unwrap_or("?")
                    .to_owned()
            })
        };
        log.as_array()
            .into_iter()
            .flatten()
            .filter_map(message)
            .filter_map(|m| sent(&m))
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = minreq::delete(&self.session).with_timeout(10).send();
        // Whatever of the browser is left is in the driver's process group.
        let _ = child::signal_group(self.driver.id() as i32, libc::SIGKILL);
        let _ = self.driver.wait();
    }
}

fn send(request: minreq::Request, body: Option<&Value>) -> Value {
    let text = body.map_or_else(String::new, Value::to_string);
    let request = request
        .with_timeout(PATIENCE.as_secs() * 2)
        .with_header("Content-Type", "application/json")
        .with_body(text);
    let answer = request.send().expect("chromedriver answers");
    let value: Value = serde_json::from_slice(answer.as_bytes()).expect("JSON");
    value["value"].clone()
}

/// Decodes base64 (RFC 4648), which a picture comes in.
fn base64(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut held, mut bits) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for d in text.bytes().filter_map(digit) {
        held = held << 6 | u32::from(d);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    bytes
}

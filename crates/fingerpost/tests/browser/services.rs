//! What a person does on the page with a service of this machine, in a browser.

use serde_json::json;

use crate::journeys::{RUN_SHOWS, clean, setting};

#[test]
fn a_service_that_listens_is_explained_on_a_click() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    browser.open(&format!("{}services", server.address));
    browser.type_into("#seconds", "\u{e003}\u{e003}1");
    browser.click(&format!("button[value='{port}']"));
    browser.until("the run shows", RUN_SHOWS);
    let command = browser.text("#reproduce");
    assert!(
        command.contains(&format!("fingerpost explain --port {port} --seconds 1")),
        "{command}"
    );
    clean(&server, &browser);
    let (code, answer) = server.post(
        "/services",
        "application/x-www-form-urlencoded",
        b"port=0&seconds=1",
    );
    assert!(
        code == 400 && answer.contains("Choose a service"),
        "{code} {answer}"
    );
}

/// A server of HTTP that nobody here wrote, ended with the test.
struct Files(std::process::Child);

impl Drop for Files {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// It, answering at a port; nothing where there is no Python.
fn files() -> Option<(Files, u16)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut command = std::process::Command::new("python3");
    command
        .args([
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            &port.to_string(),
        ])
        .current_dir("/usr/share/common-licenses");
    let child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
    let Ok(child) = child else {
        fingerpost_testing::skipped("python3 is missing");
        return None;
    };
    let files = Files(child);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(std::time::Instant::now() < deadline, "it does not answer");
        std::thread::yield_now();
    }
    Some((files, port))
}

fn ask(port: u16) -> std::io::Result<u64> {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    std::io::copy(&mut stream, &mut std::io::sink())
}

#[test]
fn a_watched_service_shows_where_time_goes_until_stopped() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    let Some((_files, port)) = files() else {
        return;
    };
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = ask(port);
            }
        });
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            browser.open(&format!("{}services", server.address));
            browser.type_into("#seconds", "\u{e003}\u{e003}600");
            browser.click(&format!("button[value='{port}']"));
            // Without the rights to follow requests there is nothing to show, and a sentence says so.
            let shown = "document.querySelectorAll('#job-live tbody tr').length > 0";
            let refused = "document.getElementById('job-done').value > 0.02";
            browser.until(
                "a budget, or none by now",
                &format!("return {shown} || {refused}"),
            );
            let live = browser.run(&format!("return {shown}")) == json!(true);
            if live {
                assert!(
                    browser.text("#job-live").contains("requests/s, median"),
                    "{}",
                    browser.text("#job-live")
                );
            } else {
                fingerpost_testing::skipped("no budget was shown");
            }
            browser.click("#job-stop");
            // Whoever watches a measurement to its end is shown its run.
            let kept = "document.querySelector('#job-run a') !== null || location.pathname.includes('/run/')";
            browser.until("what was seen is kept", &format!("return {kept}"));
        }));
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        seen.unwrap_or_else(|e| std::panic::resume_unwind(e));
    });
    clean(&server, &browser);
}

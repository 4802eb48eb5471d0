//! HTTP services as targets.

use crate::support::{CommandOutput, TestDir};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// Status, extra headers and body of a response.
pub(crate) type Reply = (u16, &'static str, String);

/// Server that answers one request per connection until the test ends.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) fn start(
        reply: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/ask?key=secret-in-the-query", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (log, reply) = (Arc::clone(&seen), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, reply) = (Arc::clone(&log), Arc::clone(&reply));
                std::thread::spawn(move || {
                    let request = read(&mut BufReader::new(&stream));
                    let number = {
                        let mut log = log.lock().unwrap();
                        log.push(request.clone());
                        log.len()
                    };
                    let (status, headers, body) = reply(number, &request);
                    let length = body.len();
                    let _ = write!(
                        &stream,
                        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
                    );
                });
            }
        });
        Server { url, seen }
    }

    /// Returns the address without a path.
    pub(crate) fn origin(&self) -> &str {
        self.url.split("/ask").next().unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn read(reader: &mut impl BufRead) -> Request {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    Request { line: lines[0].clone(), headers, body: String::from_utf8(body).unwrap() }
}

/// Returns a suite with one service and two cases.
fn test_dir(url: &str, target: &str) -> TestDir {
    TestDir::with_suite(&format!(
        "[suite]\nmax_error_rate = 1\n[[target]]\nname = \"svc\"\nurl = \"{url}\"\nprompt = \"What is {{{{ word }}}}?\"\n{target}\n[cases]\nfile = \"cases.jsonl\"\n[[check]]\nkind = \"contains\"\nvalue = \"{{{{ word }}}}\"\n"
    ))
    .write("cases.jsonl", "{\"id\": \"a\", \"word\": \"x\"}\n{\"id\": \"b\", \"word\": \"\\\"y\\\"\\n\"}\n")
}

fn echo(request: &Request) -> Reply {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let answer = json!({"answers": [{"text": body["question"]}], "tokens": {"in": 11, "out": 4}, "usd": 0.125});
    (200, "", answer.to_string())
}

const PATHS: &str = "answer = \"$.answers[0].text\"\nusage = { input_tokens = \"$.tokens.in\", output_tokens = \"$.tokens.out\", cost_usd = \"$.usd\" }";

fn error(trial: &Value) -> String {
    let error = &trial["attempt"]["error"];
    format!("{}: {}", error["kind"].as_str().unwrap(), error["message"].as_str().unwrap())
}

#[test]
fn service_response_is_extracted() {
    let bodies = [
        "body = '{\"question\": \"{{ prompt }}\", \"more\": {{ word | tojson }}}'",
        "body = { question = \"{{ prompt }}\", more = \"{{ word }}\" }",
    ];
    for body in bodies {
        let server = Server::start(|_, request| echo(request));
        let headers = "headers = { authorization = \"Bearer $SERVICE_TOKEN\", x-team = \"blue\" }";
        let dir = test_dir(&server.url, &format!("{headers}\n{body}\n{PATHS}"));
        let command = dir.command(&["run"]).env("SERVICE_TOKEN", "token-of-the-service").output();
        let output = CommandOutput::from(command.unwrap());
        assert_eq!(output.code, 0, "{}", output.transcript());
        let attempt = &dir.trials()[1]["attempt"];
        assert_eq!(attempt["output"], "What is \"y\"\n?");
        assert_eq!(attempt["usage"], json!({"input": 11, "output": 4}));
        assert_eq!(attempt["cost"], 125_000_000);
        for request in server.requests() {
            assert_eq!(request.line, "POST /ask?key=secret-in-the-query HTTP/1.1");
            assert_eq!(request.header("authorization"), Some("Bearer token-of-the-service"));
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert_eq!(request.header("x-team"), Some("blue"));
            let sent: Value = serde_json::from_str(&request.body).unwrap();
            assert!(sent["more"] == "x" || sent["more"] == "\"y\"\n", "{sent}");
        }
    }
}

#[test]
fn service_needs_only_an_address() {
    let server = Server::start(|_, request| (200, "", request.body.clone()));
    let dir = test_dir(&server.url, "").write("cases.jsonl", "{\"id\": \"a\", \"word\": \"x\"}\n");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(dir.trials()[0]["attempt"]["output"], r#"{"prompt":"What is x?"}"#);
    let http = std::fs::read_to_string(dir.run_folder().join("http.jsonl")).unwrap();
    assert!(http.contains("\"svc\"") && !http.contains("secret-in-the-query"), "{http}");
    let run = std::fs::read_to_string(dir.run_folder().join("run.json")).unwrap();
    assert!(run.contains("/ask") && !run.contains("secret-in-the-query"), "{run}");
}

#[test]
fn other_http_methods_are_supported() {
    let server = Server::start(|_, request| (200, "", format!("{} x y", request.line)));
    let dir = test_dir(&server.url, "method = \"GET\"")
        .write("cases.jsonl", "{\"id\": \"a\", \"word\": \"x\"}\n");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(server.requests()[0].body, "");
    assert!(server.requests()[0].line.starts_with("GET /ask?"));
}

#[test]
fn busy_service_is_retried() {
    let server = Server::start(|number, request| match number {
        1..=3 => (429, "retry-after: 0\r\n", "slow down".to_owned()),
        4 => (503, "retry-after: 0\r\n", String::new()),
        _ => (200, "", request.body.clone()),
    });
    let dir = test_dir(&server.url, "connections = 1");
    let output = dir.run(&["run", "--case", "a"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(dir.trials()[0]["attempt"]["timing"]["retries"], 4);
    let never = Server::start(|_, _| (429, "retry-after: 0\r\n", "slow down".to_owned()));
    let dir = test_dir_of(&never);
    assert_eq!(dir.run(&["run", "--case", "a"]).code, 3);
    assert_eq!(error(&dir.trials()[0]), "rate_limit: 429: slow down");
    assert_eq!(never.requests().len(), 5);
}

fn test_dir_of(server: &Server) -> TestDir {
    test_dir(&server.url, "")
}

#[test]
fn service_errors_are_classified() {
    for (status, body, expected) in [
        (500, "", "transient: 500: Internal Server Error"),
        (502, "<html>bad</html>", "transient: 502: <html>bad</html>"),
        (
            404,
            r#"{"error": {"message": "no such thing"}}"#,
            "invalid_request: 404: no such thing (URL); check url",
        ),
        (
            400,
            r#"{"message": "key token-of-the-service is odd"}"#,
            "invalid_request: 400: key [redacted] is odd",
        ),
        (401, "", "auth: 401: Unauthorized"),
        (302, "", "invalid_request: 302: Found"),
    ] {
        let server = Server::start(move |_, _| (status, "", body.to_owned()));
        let dir = test_dir(&server.url, "headers = { x-token = \"$SERVICE_TOKEN\" }");
        let mut command = dir.command(&["run", "--case", "a"]);
        let output = CommandOutput::from(
            command.env("SERVICE_TOKEN", "token-of-the-service").output().unwrap(),
        );
        assert_eq!(output.code, 3, "{}", output.transcript());
        // The query may contain a key.
        let (address, _) = server.url.split_once('?').unwrap();
        assert_eq!(error(&dir.trials()[0]), expected.replace("URL", address));
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[test]
fn unusable_service_responses_are_errors() {
    for (body, expected) in [
        (
            "hello",
            "malformed_response: the response is not JSON: expected value at line 1 column 1; it starts with \"hello\"",
        ),
        (
            "{\"answers\": []}",
            "malformed_response: no value at $.answers[0].text in the response; it starts with \"{\\\"answers\\\": []}\"",
        ),
    ] {
        let server = Server::start(move |_, _| (200, "", body.to_owned()));
        let dir = test_dir(&server.url, PATHS);
        assert_eq!(dir.run(&["run", "--case", "a"]).code, 3);
        assert_eq!(error(&dir.trials()[0]), expected);
    }
}

#[test]
fn service_timeout_is_an_error() {
    // The server replies after the test.
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::start(move |_, _| {
        let _ = wait.lock().unwrap().recv();
        (200, "", String::new())
    });
    let dir = test_dir(&server.url, "timeout_seconds = 0.5");
    assert_eq!(dir.run(&["run", "--case", "a"]).code, 3);
    assert_eq!(error(&dir.trials()[0]), "timeout: no response within 0.5 s");
    drop(release);
}

#[test]
fn service_concurrency_limit_is_respected() {
    let in_flight = Mutex::new((0_u32, 0_u32));
    let server = Server::start(move |_, request| {
        {
            let mut in_flight = in_flight.lock().unwrap();
            in_flight.0 += 1;
            in_flight.1 = in_flight.1.max(in_flight.0);
        }
        std::thread::yield_now();
        let mut in_flight = in_flight.lock().unwrap();
        in_flight.0 -= 1;
        (200, "", format!("{} max {}", request.body, in_flight.1))
    });
    let dir = test_dir(&server.url, "connections = 1");
    let output = dir.run(&["run", "--case", "a", "--trials", "20"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    for trial in dir.trials() {
        let output = trial["attempt"]["output"].as_str().unwrap();
        assert!(output.ends_with(" max 1"), "{output}");
    }
}

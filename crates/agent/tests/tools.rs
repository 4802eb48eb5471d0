//! The tools that come with the crate: what they do, and what they refuse.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use bakeoff_agent::{
    FetchAccess, Identity, TOOL_NAMES, Tool, ToolContext, ToolboxError, Workbench, built_in_tool,
};
use bakeoff_core::Content;
use bakeoff_llm::{HttpRequest, HttpResponse, Transport, TransportError};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A workspace beside something that is none of the model's business.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::write(folder.path().join("secret"), "hidden").unwrap();
        Place { folder }
    }

    fn outside(&self) -> &Path {
        self.folder.path()
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    fn bench(&self) -> Workbench {
        Workbench::in_folder(self.work())
    }

    /// What a tool says, and whether it is an error.
    async fn call(&self, name: &str, arguments: Value) -> Result<String, String> {
        call(&*built_in_tool(name, &self.bench()).unwrap(), arguments).await
    }
}

async fn call(tool: &dyn Tool, arguments: Value) -> Result<String, String> {
    let context = ToolContext::unattended(CancellationToken::new());
    match tool.execute(arguments, context).await {
        Ok(output) => Ok(Content::join_text(&output.content)),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn files_are_written_listed_and_read() {
    let place = Place::new();
    assert_eq!(place.call("list_files", json!({})).await.unwrap(), "[the folder is empty]");
    let written = json!({"path": "a/b/c.txt", "content": "one\n"});
    let said = place.call("write_file", written).await.unwrap();
    assert_eq!(said, "4 bytes written to `a/b/c.txt`");
    let more = json!({"path": "./a/b/c.txt", "content": "zwei\n", "mode": "append"});
    place.call("write_file", more).await.unwrap();
    let read = place.call("read_file", json!({"path": "a/b/c.txt"})).await.unwrap();
    assert_eq!(read, "one\nzwei\n");
    // What is there is replaced, not written over in part.
    place.call("write_file", json!({"path": "a/b/c.txt", "content": "x"})).await.unwrap();
    assert_eq!(place.call("read_file", json!({"path": "a/b/c.txt"})).await.unwrap(), "x");
    place.call("write_file", json!({"path": "z", "content": ""})).await.unwrap();
    symlink("a/b", place.work().join("link")).unwrap();
    let listed = place.call("list_files", json!({})).await.unwrap();
    assert_eq!(listed, "a/\na/b/\na/b/c.txt\nlink -> a/b\nz");
    assert_eq!(place.call("list_files", json!({"path": "a/b"})).await.unwrap(), "a/b/c.txt");
    assert_eq!(place.call("read_file", json!({"path": "z"})).await.unwrap(), "[the file is empty]");
}

#[tokio::test]
async fn some_lines_of_a_file_are_shown_with_a_note() {
    let place = Place::new();
    let text: String = (1..=10).map(|number| format!("line {number}\n")).collect();
    std::fs::write(place.work().join("ten"), &text).unwrap();
    let lines = |offset: u64, limit: u64| json!({"path": "ten", "offset": offset, "limit": limit});
    assert_eq!(
        place.call("read_file", lines(3, 2)).await.unwrap(),
        "line 3\nline 4\n[these are lines 3 to 4 of 10]"
    );
    assert_eq!(place.call("read_file", lines(1, 99)).await.unwrap(), text);
    let floats = json!({"path": "ten", "offset": 10.0, "limit": 1e300});
    assert_eq!(
        place.call("read_file", floats).await.unwrap(),
        "line 10\n[these are lines 10 to 10 of 10]"
    );
    let beyond = json!({"path": "ten", "offset": 1e300});
    assert_eq!(place.call("read_file", beyond).await.unwrap(), "[the file has 10 lines]");
    assert_eq!(place.call("read_file", lines(11, 1)).await.unwrap(), "[the file has 10 lines]");
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_said_to_be() {
    let place = Place::new();
    std::fs::write(place.work().join("lines"), "0123456789abcde\n".repeat(10_000)).unwrap();
    let shown = place.call("read_file", json!({"path": "lines"})).await.unwrap();
    assert!(shown.len() < 66_000, "{}", shown.len());
    assert!(shown.ends_with("\n[these are lines 1 to 4096 of 10000]"), "{}", &shown[65_000..]);
    // One line, of characters that must not be cut in two.
    std::fs::write(place.work().join("line"), "ä".repeat(5_000_000)).unwrap();
    let shown = place.call("read_file", json!({"path": "line"})).await.unwrap();
    assert!(shown.starts_with("ää"));
    let notes = "[the line is longer than what is shown; the last 1611392 bytes of the file were \
                 not looked at]";
    assert!(shown.ends_with(notes), "{}", &shown[shown.len() - 200..]);
    for number in 0..1100 {
        std::fs::write(place.work().join(format!("f{number:04}")), "").unwrap();
    }
    let listed = place.call("list_files", json!({})).await.unwrap();
    assert_eq!(listed.lines().count(), 1001);
    assert!(listed.ends_with("[102 more are not listed; name a folder to see them]"), "{listed}");
    let huge = json!({"path": "huge", "content": "x".repeat(1024 * 1024 + 1)});
    let refused = place.call("write_file", huge).await.unwrap_err();
    assert!(refused.ends_with("nothing was written"), "{refused}");
    assert!(!place.work().join("huge").exists());
}

#[tokio::test]
async fn no_path_leads_out_of_the_workspace() {
    let place = Place::new();
    let work = place.work();
    let secret = place.outside().join("secret");
    symlink(&secret, work.join("to-secret")).unwrap();
    symlink("..", work.join("up")).unwrap();
    symlink(place.outside().join("not-there"), work.join("dangling")).unwrap();
    symlink(place.outside(), work.join("outside")).unwrap();
    symlink("outside", work.join("outside-again")).unwrap();
    symlink(format!("/proc/self/root{}", secret.display()), work.join("by-proc")).unwrap();
    symlink("/proc/self/cwd", work.join("cwd")).unwrap();
    let sibling = place.outside().join("work-of-others");
    std::fs::create_dir(&sibling).unwrap();
    std::fs::write(sibling.join("file"), "theirs").unwrap();
    symlink(&sibling, work.join("sibling")).unwrap();
    let absolute = secret.display().to_string();
    let inside = work.join("file").display().to_string();
    let paths = [
        absolute.as_str(),
        inside.as_str(),
        "/proc/self/root/etc/passwd",
        "../secret",
        "a/../../secret",
        "to-secret",
        "up/secret",
        "outside/secret",
        "outside-again/secret",
        "by-proc",
        "cwd/Cargo.toml",
        "sibling/file",
        "dangling",
        "outside/new/file",
        "dangling/file",
        "a\0b",
    ];
    for path in paths {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "broken"})),
            ("list_files", json!({"path": path})),
        ] {
            let said = place.call(tool, arguments).await;
            assert!(said.is_err(), "{tool} {path}: {said:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hidden");
    assert_eq!(std::fs::read_to_string(sibling.join("file")).unwrap(), "theirs");
    assert!(!place.outside().join("not-there").exists());
    assert!(!place.outside().join("new").exists());
    let listed = place.call("list_files", json!({"path": "up"})).await.unwrap_err();
    assert_eq!(listed, "`up` leads out of the workspace");
    let read = place.call("read_file", json!({"path": "../secret"})).await.unwrap_err();
    assert_eq!(
        read,
        "`../secret` is refused: a path must not contain `..`; it is relative to the workspace"
    );
    // A listing names links and does not follow them.
    let listed = place.call("list_files", json!({})).await.unwrap();
    assert!(!listed.contains("outside/secret"), "{listed}");
}

#[tokio::test]
async fn links_within_the_workspace_are_followed() {
    let place = Place::new();
    std::fs::create_dir(place.work().join("real")).unwrap();
    std::fs::write(place.work().join("real/file"), "here").unwrap();
    symlink("real", place.work().join("link")).unwrap();
    assert_eq!(place.call("read_file", json!({"path": "link/file"})).await.unwrap(), "here");
    place.call("write_file", json!({"path": "link/new/file", "content": "new"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.work().join("real/new/file")).unwrap(), "new");
}

#[tokio::test]
async fn only_regular_files_of_text_are_read() {
    let place = Place::new();
    let pipe = place.work().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (tool, arguments) in [
        ("read_file", json!({"path": "pipe"})),
        ("write_file", json!({"path": "pipe", "content": "x"})),
    ] {
        assert_eq!(place.call(tool, arguments).await.unwrap_err(), "`pipe` is no regular file");
    }
    std::fs::write(place.work().join("image"), b"\x89PNG\xff\xfe").unwrap();
    let said = place.call("read_file", json!({"path": "image"})).await.unwrap_err();
    assert_eq!(said, "`image` is no text: its 6 bytes are not UTF-8");
    let said = place.call("read_file", json!({"path": "."})).await.unwrap_err();
    assert_eq!(said, "`.` is a folder");
    let said = place.call("read_file", json!({"path": "none"})).await.unwrap_err();
    assert_eq!(said, "there is no `none`");
    let said = place.call("list_files", json!({"path": "image"})).await.unwrap_err();
    assert_eq!(said, "`image` is no folder");
    let under = json!({"path": "image/file", "content": ""});
    assert_eq!(place.call("write_file", under).await.unwrap_err(), "`image` is no folder");
    for path in ["", "."] {
        let said = place.call("write_file", json!({"path": path, "content": ""})).await;
        assert_eq!(said.unwrap_err(), format!("`{path}` is no path of a file"));
    }
}

#[tokio::test]
async fn a_command_tells_its_code_and_both_outputs() {
    let place = Place::new();
    let run = |command: &str| place.call("run_command", json!({"command": command}));
    assert_eq!(run("echo hi > file; cat file").await.unwrap(), "exit code 0\n--- stdout\nhi");
    assert_eq!(std::fs::read_to_string(place.work().join("file")).unwrap(), "hi\n");
    let said = run("echo out; echo err >&2; exit 3").await.unwrap();
    assert_eq!(said, "exit code 3\n--- stdout\nout\n--- stderr\nerr");
    assert_eq!(run("kill -9 $$").await.unwrap(), "ended by signal 9");
    assert_eq!(run("cat").await.unwrap(), "exit code 0");
    let long = run("head -c 100000 /dev/zero | tr '\\0' x").await.unwrap();
    assert!(long.ends_with("xxx\n[67232 more bytes are not shown]"), "{}", &long[32_000..]);
}

#[tokio::test]
async fn a_command_that_takes_too_long_tells_what_it_printed() {
    let place = Place::new();
    let bench = Workbench { command_timeout: Duration::from_secs(5), ..place.bench() };
    let tool = built_in_tool("run_command", &bench).unwrap();
    let command = json!({"command": "echo begun; exec sleep 600"});
    let said = call(&*tool, command).await.unwrap_err();
    assert_eq!(said, "the command took longer than 5 s and was ended\n--- stdout\nbegun", "{said}");
}

#[tokio::test]
async fn a_cancelled_command_is_ended() {
    let place = Place::new();
    let (started, mut groups) = tokio::sync::mpsc::channel(1);
    let bench = Workbench { started: Some(started), ..place.bench() };
    let tool = built_in_tool("run_command", &bench).unwrap();
    let cancel = CancellationToken::new();
    let context = ToolContext::unattended(cancel.clone());
    let work = tool.execute(json!({"command": "exec sleep 600"}), context);
    let stop = async {
        let group = groups.recv().await.unwrap();
        cancel.cancel();
        group
    };
    let (said, group) = tokio::join!(work, stop);
    assert_eq!(said.unwrap_err().to_string(), "the command was cancelled");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", group.id));
    assert!(stat.is_err(), "{stat:?}");
}

#[tokio::test]
async fn commands_that_run_at_once_do_not_end_each_other() {
    let place = Place::new();
    let run = format!("tools-{}", std::process::id());
    let identity = Identity { run, trial: Some("t/c/1".to_owned()), part: None };
    let bench = Workbench { identity: Some(identity), ..place.bench() };
    let tool = built_in_tool("run_command", &bench).unwrap();
    let run = |command: &str| call(&*tool, json!({ "command": command }));
    assert_eq!(run("mkfifo pipe").await.unwrap(), "exit code 0");
    let waiting = run("read -r word < pipe; echo $word");
    // Open for both, so that what is written waits for its reader.
    let mut pipe =
        std::fs::File::options().read(true).write(true).open(place.work().join("pipe")).unwrap();
    let others = async {
        run("true").await.unwrap();
        pipe.write_all(b"on\n").unwrap();
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "exit code 0\n--- stdout\non");
}

/// Answers with what it was given, and remembers what it was asked.
#[derive(Debug)]
struct Pages {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    asked: Mutex<Vec<HttpRequest>>,
}

impl Transport for Pages {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        self.asked.lock().unwrap().push(request);
        let pairs = self.headers.iter().map(|(name, value)| {
            (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())
        });
        let headers = pairs.collect();
        let status = self.status.try_into().unwrap();
        let pieces: Vec<_> =
            self.body.chunks(1000).map(|piece| Ok(piece.to_vec().into())).collect();
        async move { Ok(HttpResponse { status, headers, body: stream::iter(pieces).boxed() }) }
            .boxed()
    }
}

fn pages(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Arc<Pages> {
    let headers = headers.to_vec();
    Arc::new(Pages { status, headers, body: body.to_vec(), asked: Mutex::default() })
}

async fn fetch(pages: &Arc<Pages>, hosts: &[&str], arguments: Value) -> Result<String, String> {
    let place = Place::new();
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let access = FetchAccess { transport: pages.clone(), hosts };
    let bench = Workbench { fetch: Some(access), ..place.bench() };
    call(&*built_in_tool("http_fetch", &bench).unwrap(), arguments).await
}

#[tokio::test]
async fn pages_of_allowed_hosts_are_fetched_without_anything_secret() {
    let page = pages(404, &[("content-type", "text/html")], b"<p>no</p>");
    let url = json!({"url": "https://Example.com/a?b=c"});
    let said = fetch(&page, &["example.com"], url).await.unwrap();
    assert_eq!(said, "status 404\ncontent-type: text/html\n\n<p>no</p>");
    let post = json!({"url": "http://127.0.0.1:8080/", "method": "POST", "body": "{\"a\": 1}"});
    fetch(&page, &["127.0.0.1:8080"], post).await.unwrap();
    let asked = page.asked.lock().unwrap();
    assert_eq!((asked[0].method.as_str(), asked[1].method.as_str()), ("GET", "POST"));
    assert!(asked[0].headers.is_empty() && asked[0].body.is_empty());
    assert_eq!(asked[1].headers["content-type"], "application/json");
}

#[tokio::test]
async fn other_hosts_ports_schemes_and_passwords_are_refused_before_anything_is_sent() {
    let page = pages(200, &[], b"x");
    for url in [
        "https://example.org/",
        "https://sub.example.com/",
        "https://example.com.evil.org/",
        "https://example.com:8443/",
        "https://example.com@evil.org/",
        "https://user:word@example.com/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "example.com",
        "",
    ] {
        let said = fetch(&page, &["example.com"], json!({"url": url})).await;
        assert!(said.is_err(), "{url}: {said:?}");
    }
    let said = fetch(&page, &["*"], json!({"url": "gopher://example.com/"})).await;
    assert_eq!(
        said.unwrap_err(),
        "`gopher://example.com/` is refused: only http and https are fetched"
    );
    assert!(page.asked.lock().unwrap().is_empty());
    assert!(fetch(&page, &["*"], json!({"url": "http://localhost:1/"})).await.is_ok());
}

#[tokio::test]
async fn redirects_are_told_and_not_followed() {
    let page = pages(302, &[("location", "/next")], b"");
    let said = fetch(&page, &["a.com"], json!({"url": "http://a.com/first"})).await.unwrap();
    assert_eq!(said, "status 302; not followed, it leads to http://a.com/next");
    assert_eq!(page.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn long_pages_are_cut_and_what_is_no_text_is_refused() {
    let page = pages(200, &[], "ß".repeat(100_000).as_bytes());
    let said = fetch(&page, &["*"], json!({"url": "http://a.com"})).await.unwrap();
    assert!(said.ends_with("ß\n[there is more, which is not shown]"));
    assert!(said.len() < 66_000, "{}", said.len());
    let page = pages(200, &[("content-type", "image/png")], b"\xff\xfe");
    let said = fetch(&page, &["*"], json!({"url": "http://a.com"})).await.unwrap_err();
    assert_eq!(said, "status 200, but the body is no text (content-type: image/png)");
}

#[test]
fn tools_are_made_by_their_names() {
    let place = Place::new();
    let transport = pages(200, &[], b"");
    let access = FetchAccess { transport, hosts: vec!["*".to_owned()] };
    let bench = Workbench { fetch: Some(access), ..place.bench() };
    for name in TOOL_NAMES {
        assert_eq!(built_in_tool(name, &bench).unwrap().definition().name, name);
    }
    let wrong = |name: &str, bench: &Workbench| built_in_tool(name, bench).unwrap_err();
    assert!(matches!(wrong("http_fetch", &place.bench()), ToolboxError::NoHosts));
    assert_eq!(
        wrong("rm", &bench).to_string(),
        "there is no tool `rm`; there are read_file, write_file, list_files, run_command, http_fetch"
    );
    let gone = Workbench::in_folder(place.outside().join("gone"));
    assert!(matches!(wrong("read_file", &gone), ToolboxError::Folder { .. }));
}

//! Built-in tools: results, limits and rejected arguments.

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

/// Workspace next to files that the tools must not access.
struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    fn new() -> TestFolder {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::write(folder.path().join("secret"), "hidden").unwrap();
        TestFolder { folder }
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

    /// Returns the text of the result, or of the error.
    async fn call(&self, name: &str, arguments: Value) -> Result<String, String> {
        call(&*built_in_tool(name, &self.bench()).unwrap(), arguments).await
    }
}

async fn call(tool: &dyn Tool, arguments: Value) -> Result<String, String> {
    let context = ToolContext::detached(CancellationToken::new());
    match tool.execute(arguments, context).await {
        Ok(output) => Ok(Content::join_text(&output.content)),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn files_are_written_listed_and_read() {
    let folder = TestFolder::new();
    assert_eq!(folder.call("list_files", json!({})).await.unwrap(), "[the folder is empty]");
    let written = json!({"path": "a/b/c.txt", "content": "one\n"});
    let result = folder.call("write_file", written).await.unwrap();
    assert_eq!(result, "4 bytes written to `a/b/c.txt`");
    let more = json!({"path": "./a/b/c.txt", "content": "zwei\n", "mode": "append"});
    folder.call("write_file", more).await.unwrap();
    let read = folder.call("read_file", json!({"path": "a/b/c.txt"})).await.unwrap();
    assert_eq!(read, "one\nzwei\n");
    // Existing content is replaced completely.
    folder.call("write_file", json!({"path": "a/b/c.txt", "content": "x"})).await.unwrap();
    assert_eq!(folder.call("read_file", json!({"path": "a/b/c.txt"})).await.unwrap(), "x");
    folder.call("write_file", json!({"path": "z", "content": ""})).await.unwrap();
    symlink("a/b", folder.work().join("link")).unwrap();
    let listed = folder.call("list_files", json!({})).await.unwrap();
    assert_eq!(listed, "a/\na/b/\na/b/c.txt\nlink -> a/b\nz");
    assert_eq!(folder.call("list_files", json!({"path": "a/b"})).await.unwrap(), "a/b/c.txt");
    assert_eq!(
        folder.call("read_file", json!({"path": "z"})).await.unwrap(),
        "[the file is empty]"
    );
}

#[tokio::test]
async fn selected_lines_are_returned_with_a_note() {
    let folder = TestFolder::new();
    let text: String = (1..=10).map(|number| format!("line {number}\n")).collect();
    std::fs::write(folder.work().join("ten"), &text).unwrap();
    let lines = |offset: u64, limit: u64| json!({"path": "ten", "offset": offset, "limit": limit});
    assert_eq!(
        folder.call("read_file", lines(3, 2)).await.unwrap(),
        "line 3\nline 4\n[these are lines 3 to 4 of 10]"
    );
    assert_eq!(folder.call("read_file", lines(1, 99)).await.unwrap(), text);
    let floats = json!({"path": "ten", "offset": 10.0, "limit": 1e300});
    assert_eq!(
        folder.call("read_file", floats).await.unwrap(),
        "line 10\n[these are lines 10 to 10 of 10]"
    );
    let beyond = json!({"path": "ten", "offset": 1e300});
    assert_eq!(folder.call("read_file", beyond).await.unwrap(), "[the file has 10 lines]");
    assert_eq!(folder.call("read_file", lines(11, 1)).await.unwrap(), "[the file has 10 lines]");
}

#[tokio::test]
async fn long_content_is_truncated_with_a_note() {
    let folder = TestFolder::new();
    std::fs::write(folder.work().join("lines"), "0123456789abcde\n".repeat(10_000)).unwrap();
    let shown = folder.call("read_file", json!({"path": "lines"})).await.unwrap();
    assert!(shown.len() < 66_000, "{}", shown.len());
    assert!(shown.ends_with("\n[these are lines 1 to 4096 of 10000]"), "{}", &shown[65_000..]);
    // One line of multi-byte characters, which must not be split.
    std::fs::write(folder.work().join("line"), "ä".repeat(5_000_000)).unwrap();
    let shown = folder.call("read_file", json!({"path": "line"})).await.unwrap();
    assert!(shown.starts_with("ää"));
    let notes = "[the line is longer than what is shown; the last 1611392 bytes of the file were \
                 not looked at]";
    assert!(shown.ends_with(notes), "{}", &shown[shown.len() - 200..]);
    for number in 0..1100 {
        std::fs::write(folder.work().join(format!("f{number:04}")), "").unwrap();
    }
    let listed = folder.call("list_files", json!({})).await.unwrap();
    assert_eq!(listed.lines().count(), 1001);
    assert!(listed.ends_with("[102 more are not listed; name a folder to see them]"), "{listed}");
    let huge = json!({"path": "huge", "content": "x".repeat(1024 * 1024 + 1)});
    let error = folder.call("write_file", huge).await.unwrap_err();
    assert!(error.ends_with("nothing was written"), "{error}");
    assert!(!folder.work().join("huge").exists());
}

#[tokio::test]
async fn no_path_leads_out_of_the_workspace() {
    let folder = TestFolder::new();
    let work = folder.work();
    let secret = folder.outside().join("secret");
    symlink(&secret, work.join("to-secret")).unwrap();
    symlink("..", work.join("up")).unwrap();
    symlink(folder.outside().join("not-there"), work.join("dangling")).unwrap();
    symlink(folder.outside(), work.join("outside")).unwrap();
    symlink("outside", work.join("outside-again")).unwrap();
    symlink(format!("/proc/self/root{}", secret.display()), work.join("by-proc")).unwrap();
    symlink("/proc/self/cwd", work.join("cwd")).unwrap();
    let sibling = folder.outside().join("work-of-others");
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
            let result = folder.call(tool, arguments).await;
            assert!(result.is_err(), "{tool} {path}: {result:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hidden");
    assert_eq!(std::fs::read_to_string(sibling.join("file")).unwrap(), "theirs");
    assert!(!folder.outside().join("not-there").exists());
    assert!(!folder.outside().join("new").exists());
    let listed = folder.call("list_files", json!({"path": "up"})).await.unwrap_err();
    assert_eq!(listed, "`up` leads out of the workspace");
    let read = folder.call("read_file", json!({"path": "../secret"})).await.unwrap_err();
    assert_eq!(
        read,
        "`../secret` is refused: a path must not contain `..`; it is relative to the workspace"
    );
    // Listings contain links, but do not follow them.
    let listed = folder.call("list_files", json!({})).await.unwrap();
    assert!(!listed.contains("outside/secret"), "{listed}");
}

#[tokio::test]
async fn depth_of_paths_is_limited() {
    let folder = TestFolder::new();
    let deepest = format!("{}file", "d/".repeat(63));
    folder.call("write_file", json!({"path": deepest, "content": "x"})).await.unwrap();
    assert_eq!(folder.call("read_file", json!({"path": deepest})).await.unwrap(), "x");
    let deeper = format!("{}file", "e/".repeat(1000));
    let error = folder.call("write_file", json!({"path": deeper, "content": "x"})).await;
    assert!(error.unwrap_err().contains("1001 components; at most 64"));
    assert!(!folder.work().join("e").exists());
}

#[tokio::test]
async fn links_within_the_workspace_are_followed() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.work().join("real")).unwrap();
    std::fs::write(folder.work().join("real/file"), "here").unwrap();
    symlink("real", folder.work().join("link")).unwrap();
    assert_eq!(folder.call("read_file", json!({"path": "link/file"})).await.unwrap(), "here");
    folder.call("write_file", json!({"path": "link/new/file", "content": "new"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.work().join("real/new/file")).unwrap(), "new");
}

#[tokio::test]
async fn only_regular_text_files_are_read() {
    let folder = TestFolder::new();
    let pipe = folder.work().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (tool, arguments) in [
        ("read_file", json!({"path": "pipe"})),
        ("write_file", json!({"path": "pipe", "content": "x"})),
    ] {
        assert_eq!(folder.call(tool, arguments).await.unwrap_err(), "`pipe` is no regular file");
    }
    std::fs::write(folder.work().join("image"), b"\x89PNG\xff\xfe").unwrap();
    let result = folder.call("read_file", json!({"path": "image"})).await.unwrap_err();
    assert_eq!(result, "`image` is no text: its 6 bytes are not UTF-8");
    let result = folder.call("read_file", json!({"path": "."})).await.unwrap_err();
    assert_eq!(result, "`.` is a folder");
    let result = folder.call("read_file", json!({"path": "none"})).await.unwrap_err();
    assert_eq!(result, "there is no `none`");
    let result = folder.call("list_files", json!({"path": "image"})).await.unwrap_err();
    assert_eq!(result, "`image` is no folder");
    let under = json!({"path": "image/file", "content": ""});
    assert_eq!(folder.call("write_file", under).await.unwrap_err(), "`image` is no folder");
    for path in ["", "."] {
        let result = folder.call("write_file", json!({"path": path, "content": ""})).await;
        assert_eq!(result.unwrap_err(), format!("`{path}` is no path of a file"));
    }
}

#[tokio::test]
async fn command_returns_its_exit_code_and_both_outputs() {
    let folder = TestFolder::new();
    let run = |command: &str| folder.call("run_command", json!({"command": command}));
    assert_eq!(run("echo hi > file; cat file").await.unwrap(), "exit code 0\n--- stdout\nhi");
    assert_eq!(std::fs::read_to_string(folder.work().join("file")).unwrap(), "hi\n");
    let result = run("echo out; echo err >&2; exit 3").await.unwrap();
    assert_eq!(result, "exit code 3\n--- stdout\nout\n--- stderr\nerr");
    assert_eq!(run("kill -9 $$").await.unwrap(), "ended by signal 9");
    assert_eq!(run("cat").await.unwrap(), "exit code 0");
    let long = run("head -c 100000 /dev/zero | tr '\\0' x").await.unwrap();
    assert!(long.ends_with("xxx\n[67232 more bytes are not shown]"), "{}", &long[32_000..]);
}

#[tokio::test]
async fn command_that_times_out_returns_its_output() {
    let folder = TestFolder::new();
    let mut bench = folder.bench();
    bench.command_timeout = Duration::from_secs(5);
    let tool = built_in_tool("run_command", &bench).unwrap();
    let command = json!({"command": "echo started; exec sleep 600"});
    let result = call(&*tool, command).await.unwrap_err();
    assert_eq!(
        result, "the command took longer than 5 s and was ended\n--- stdout\nstarted",
        "{result}"
    );
}

#[tokio::test]
async fn cancelled_command_is_terminated() {
    let folder = TestFolder::new();
    let (started, mut groups) = tokio::sync::mpsc::channel(1);
    let mut bench = folder.bench();
    bench.started = Some(started);
    let tool = built_in_tool("run_command", &bench).unwrap();
    let cancel = CancellationToken::new();
    let context = ToolContext::detached(cancel.clone());
    let work = tool.execute(json!({"command": "exec sleep 600"}), context);
    let stop = async {
        let group = groups.recv().await.unwrap();
        cancel.cancel();
        group
    };
    let (result, group) = tokio::join!(work, stop);
    assert_eq!(result.unwrap_err().to_string(), "the command was cancelled");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", group.id));
    assert!(stat.is_err(), "{stat:?}");
}

#[tokio::test]
async fn concurrent_commands_do_not_kill_each_other() {
    let folder = TestFolder::new();
    let run = format!("tools-{}", std::process::id());
    let identity = Identity { run, trial: Some("t/c/1".to_owned()), part: None };
    let mut bench = folder.bench();
    bench.identity = Some(identity);
    let tool = built_in_tool("run_command", &bench).unwrap();
    let run = |command: &str| call(&*tool, json!({ "command": command }));
    assert_eq!(run("mkfifo pipe").await.unwrap(), "exit code 0");
    let waiting = run("read -r word < pipe; echo $word");
    // Opened for reading and writing, so that opening does not block and written data stays in the pipe.
    let mut pipe =
        std::fs::File::options().read(true).write(true).open(folder.work().join("pipe")).unwrap();
    let others = async {
        run("true").await.unwrap();
        pipe.write_all(b"on\n").unwrap();
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "exit code 0\n--- stdout\non");
}

/// Transport that returns one page for every request and records the requests.
#[derive(Debug)]
struct PageTransport {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    requests: Mutex<Vec<HttpRequest>>,
}

impl Transport for PageTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        self.requests.lock().unwrap().push(request);
        let pairs = self.headers.iter().map(|(name, value)| {
            (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())
        });
        let headers = pairs.collect();
        let status = self.status.try_into().unwrap();
        let chunks: Vec<_> =
            self.body.chunks(1000).map(|chunk| Ok(chunk.to_vec().into())).collect();
        async move { Ok(HttpResponse { status, headers, body: stream::iter(chunks).boxed() }) }
            .boxed()
    }
}

fn pages(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Arc<PageTransport> {
    let headers = headers.to_vec();
    Arc::new(PageTransport { status, headers, body: body.to_vec(), requests: Mutex::default() })
}

async fn fetch(
    pages: &Arc<PageTransport>,
    hosts: &[&str],
    arguments: Value,
) -> Result<String, String> {
    let folder = TestFolder::new();
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let access = FetchAccess { transport: pages.clone(), hosts };
    let mut bench = folder.bench();
    bench.fetch = Some(access);
    call(&*built_in_tool("http_fetch", &bench).unwrap(), arguments).await
}

#[tokio::test]
async fn pages_of_permitted_hosts_are_fetched_without_secrets() {
    let page = pages(404, &[("content-type", "text/html")], b"<p>no</p>");
    let url = json!({"url": "https://Example.com/a?b=c"});
    let result = fetch(&page, &["example.com"], url).await.unwrap();
    assert_eq!(result, "status 404\ncontent-type: text/html\n\n<p>no</p>");
    let post = json!({"url": "http://127.0.0.1:8080/", "method": "POST", "body": "{\"a\": 1}"});
    fetch(&page, &["127.0.0.1:8080"], post).await.unwrap();
    let requests = page.requests.lock().unwrap();
    assert_eq!((requests[0].method.as_str(), requests[1].method.as_str()), ("GET", "POST"));
    assert!(requests[0].headers.is_empty() && requests[0].body.is_empty());
    assert_eq!(requests[1].headers["content-type"], "application/json");
}

#[tokio::test]
async fn other_hosts_ports_schemes_and_passwords_are_rejected_without_a_request() {
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
        let result = fetch(&page, &["example.com"], json!({"url": url})).await;
        assert!(result.is_err(), "{url}: {result:?}");
    }
    let result = fetch(&page, &["*"], json!({"url": "gopher://example.com/"})).await;
    assert_eq!(
        result.unwrap_err(),
        "`gopher://example.com/` is refused: only http and https are fetched"
    );
    assert!(page.requests.lock().unwrap().is_empty());
    assert!(fetch(&page, &["*"], json!({"url": "http://localhost:1/"})).await.is_ok());
}

#[tokio::test]
async fn redirects_are_reported_and_not_followed() {
    let page = pages(302, &[("location", "/next")], b"");
    let result = fetch(&page, &["a.com"], json!({"url": "http://a.com/first"})).await.unwrap();
    assert_eq!(result, "status 302; not followed, it leads to http://a.com/next");
    assert_eq!(page.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn long_pages_are_truncated_and_binary_pages_rejected() {
    let page = pages(200, &[], "ß".repeat(100_000).as_bytes());
    let result = fetch(&page, &["*"], json!({"url": "http://a.com"})).await.unwrap();
    assert!(result.ends_with("ß\n[there is more, which is not shown]"));
    assert!(result.len() < 66_000, "{}", result.len());
    let page = pages(200, &[("content-type", "image/png")], b"\xff\xfe");
    let result = fetch(&page, &["*"], json!({"url": "http://a.com"})).await.unwrap_err();
    assert_eq!(result, "status 200, but the body is no text (content-type: image/png)");
}

#[test]
fn tools_are_created_by_name() {
    let folder = TestFolder::new();
    let transport = pages(200, &[], b"");
    let access = FetchAccess { transport, hosts: vec!["*".to_owned()] };
    let mut bench = folder.bench();
    bench.fetch = Some(access);
    for name in TOOL_NAMES {
        assert_eq!(built_in_tool(name, &bench).unwrap().definition().name, name);
    }
    let error = |name: &str, bench: &Workbench| built_in_tool(name, bench).unwrap_err();
    assert!(matches!(error("http_fetch", &folder.bench()), ToolboxError::NoHosts));
    assert_eq!(
        error("rm", &bench).to_string(),
        "unknown tool `rm`; available: read_file, write_file, list_files, run_command, http_fetch"
    );
    let missing = Workbench::in_folder(folder.outside().join("missing"));
    assert!(matches!(error("read_file", &missing), ToolboxError::Folder { .. }));
}

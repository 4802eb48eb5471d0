//! MCP servers: their tools, results, failures and processes.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use bakeoff_agent::{
    Identity, McpError, McpServer, McpServers, Tool, ToolContext, ToolOutput, Workbench,
};
use bakeoff_core::{Content, ImageSource};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Server whose tools and behaviour are defined by JSON in its first argument.
const SERVER: &str = r#"
import json, os, sys, time

plan = json.loads(sys.argv[1])

def send(message):
    print(json.dumps(message), flush=True)

def answer(id, result):
    send({"jsonrpc": "2.0", "id": id, "result": result})

if "garbage" in plan:
    print("Welcome to my server!\n{\"half\": \n\x00\xff[1, 2]", flush=True)
if "stderr" in plan:
    print("x" * 100000, file=sys.stderr)
    print(plan["stderr"], file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    id, method = request.get("id"), request.get("method")
    if plan.get("silent") == method:
        continue
    if plan.get("exits") == method:
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)
    if method == "initialize":
        answer(id, {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })
    elif method == "tools/list":
        pages = plan.get("pages") or [plan["tools"]]
        at = int(request["params"].get("cursor") or 0)
        more = {"nextCursor": str(at + 1)} if at + 1 < len(pages) else {}
        answer(id, {"tools": pages[at], **more})
    elif method == "tools/call":
        given = request["params"]
        if "rejects" in plan:
            send({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": plan["rejects"]}})
        elif given["name"] == "where":
            answer(id, {"content": [{"type": "text", "text": json.dumps({
                "folder": os.getcwd(),
                "trial": os.environ.get("BAKEOFF_TRIAL_ID"),
                "shop": os.environ.get("SHOP"),
                "process": os.getpid(),
            })}]})
        else:
            answer(id, plan.get("result") or {
                "content": [{"type": "text", "text": json.dumps(given.get("arguments"))}]
            })
"#;

fn tool(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"name": name, "description": "Repeats its argument.", "inputSchema": schema})
}

fn server(plan: Value) -> McpServer {
    let command = ["python3", "-c", SERVER, &plan.to_string()].map(Into::into).to_vec();
    McpServer::new("fake", command)
}

/// Temporary folder for servers.
struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder { folder: tempfile::tempdir().unwrap() }
    }

    async fn start(&self, servers: &[McpServer]) -> Result<McpServers, McpError> {
        let bench = Workbench::in_folder(self.folder.path());
        McpServers::start(servers, &bench, Duration::from_secs(30)).await
    }

    async fn start_error(&self, server: McpServer) -> String {
        self.start(&[server]).await.unwrap_err().to_string()
    }
}

fn names(servers: &McpServers) -> Vec<&str> {
    servers.tools().iter().map(|tool| tool.definition().name.as_str()).collect()
}

async fn call(tool: &Arc<dyn Tool>, arguments: Value) -> Result<ToolOutput, String> {
    let context = ToolContext::detached(CancellationToken::new());
    tool.execute(arguments, context).await.map_err(|error| error.to_string())
}

async fn call_text(tool: &Arc<dyn Tool>, arguments: Value) -> Result<String, String> {
    call(tool, arguments).await.map(|output| Content::join_text(&output.content))
}

#[tokio::test]
async fn tools_are_prefixed_with_the_server_name_and_called() {
    let folder = TestFolder::new();
    let first = server(json!({"pages": [[tool("echo")], [tool("other.tool"), tool("where")]]}));
    let mut second = server(json!({"tools": [tool("a"), tool("b")]})).tools(vec!["b".to_owned()]);
    second.name = "second".to_owned();
    let servers = [first, second];
    let servers = folder.start(&servers).await.unwrap();
    assert_eq!(names(&servers), ["fake__echo", "fake__other_tool", "fake__where", "second__b"]);
    let definition = servers.tools()[0].definition();
    assert_eq!(definition.description, "Repeats its argument.");
    assert_eq!(definition.parameters["properties"]["text"]["type"], "string");
    let text = json!({"text": "hé\n"});
    let answer = call_text(&servers.tools()[0], text.clone()).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), text);
    servers.close().await;
}

#[tokio::test]
async fn server_runs_in_the_workspace_with_its_identity() {
    let folder = TestFolder::new();
    let identity = Identity {
        run: format!("mcp-{}", std::process::id()),
        trial: Some("t/c/1".to_owned()),
        part: None,
    };
    let (started, mut groups) = tokio::sync::mpsc::channel(1);
    let mut bench = Workbench::in_folder(folder.folder.path());
    bench.identity = Some(identity);
    bench.started = Some(started);
    let server = server(json!({"tools": [tool("where")]}));
    let timeout = Duration::from_secs(30);
    let servers = McpServers::start(&[server], &bench, timeout).await.unwrap();
    let answer = call_text(&servers.tools()[0], json!({})).await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let folder = folder.folder.path().canonicalize().unwrap();
    assert_eq!(answer["folder"], folder.to_str().unwrap());
    assert_eq!(answer["trial"], "t/c/1");
    assert_eq!(answer["process"], groups.recv().await.unwrap().id);
}

/// Waits until a process has exited; the kernel ends a killed process asynchronously.
async fn wait_for_exit(id: i64) {
    let is_running = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let waiting = async {
        while is_running() {
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(60);
    assert!(tokio::time::timeout(limit, waiting).await.is_ok(), "the process is still running");
}

#[tokio::test]
async fn dropping_the_handle_kills_the_servers_and_their_tools_report_it() {
    let folder = TestFolder::new();
    let servers = folder.start(&[server(json!({"tools": [tool("where")]}))]).await.unwrap();
    let tool = Arc::clone(&servers.tools()[0]);
    let answer: Value = serde_json::from_str(&call_text(&tool, json!({})).await.unwrap()).unwrap();
    drop(servers);
    wait_for_exit(answer["process"].as_i64().unwrap()).await;
    let error = call_text(&tool, json!({})).await.unwrap_err();
    assert_eq!(error, "the MCP server `fake` has ended (it was closed)");
}

#[tokio::test]
async fn results_can_be_texts_images_and_errors() {
    let folder = TestFolder::new();
    let with = |result: Value| server(json!({"tools": [tool("t")], "result": result}));
    let results = [
        json!({"content": [
            {"type": "text", "text": "look"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        ]}),
        json!({"content": [], "structuredContent": {"a": 1}}),
        json!({"content": []}),
        json!({"content": [{"type": "text", "text": "no such city"}], "isError": true}),
        json!({"content": [{"type": "text", "text": "ü".repeat(40_000)}]}),
    ];
    let mut outputs = Vec::new();
    for result in results {
        let servers = folder.start(&[with(result)]).await.unwrap();
        outputs.push(call(&servers.tools()[0], json!({})).await);
    }
    let image = ImageSource::Base64 { media_type: "image/png".to_owned(), data: "aGk=".to_owned() };
    let content = vec![
        Content::text("look"),
        Content::Image { source: image },
        Content::text("inside"),
        Content::text("[a sound is left out]"),
    ];
    assert_eq!(outputs[0], Ok(ToolOutput { content }));
    assert_eq!(outputs[1], Ok("{\"a\":1}".into()));
    assert_eq!(outputs[2], Ok("[the tool returned nothing]".into()));
    assert_eq!(outputs[3], Err("no such city".to_owned()));
    let long = outputs.remove(4).unwrap();
    let long = Content::join_text(&long.content);
    assert!(long.ends_with("ü\n[14464 more bytes are not shown]"), "{}", long.len());
}

#[tokio::test]
async fn error_message_of_the_server_is_passed_on() {
    let folder = TestFolder::new();
    let plan = json!({"tools": [tool("t")], "rejects": "text must not be empty"});
    let servers = folder.start(&[server(plan)]).await.unwrap();
    let error = call_text(&servers.tools()[0], json!({})).await.unwrap_err();
    assert_eq!(error, "text must not be empty");
}

#[tokio::test]
async fn server_that_does_not_respond_times_out() {
    let folder = TestFolder::new();
    for method in ["initialize", "tools/list"] {
        let plan = json!({"tools": [], "silent": method, "stderr": "still thinking"});
        let bench = Workbench::in_folder(folder.folder.path());
        let timeout = Duration::from_millis(700);
        let error = McpServers::start(&[server(plan)], &bench, timeout).await.unwrap_err();
        assert!(matches!(error, McpError::TimedOut { .. }), "{error}");
        let text = error.to_string();
        let prefix = "the MCP server `fake` did not list its tools within 0.7 s";
        assert!(text.starts_with(prefix), "{text}");
        assert!(text.len() < 5000, "{}", text.len());
    }
}

#[tokio::test]
async fn server_without_tools_is_an_error() {
    let folder = TestFolder::new();
    let error = folder.start_error(server(json!({"tools": []}))).await;
    assert_eq!(error, "the MCP server `fake` has no tools");
}

#[tokio::test]
async fn call_without_response_can_be_cancelled() {
    let folder = TestFolder::new();
    let plan = json!({"tools": [tool("t")], "silent": "tools/call"});
    let servers = folder.start(&[server(plan)]).await.unwrap();
    let cancel = CancellationToken::new();
    let work = servers.tools()[0].execute(json!({}), ToolContext::detached(cancel.clone()));
    let stop = async { cancel.cancel() };
    let (output, ()) = tokio::join!(work, stop);
    assert_eq!(output.unwrap_err().to_string(), "cancelled");
}

#[tokio::test]
async fn invalid_messages_are_ignored() {
    let folder = TestFolder::new();
    let plan = json!({"tools": [tool("t")], "garbage": true});
    let servers = folder.start(&[server(plan)]).await.unwrap();
    assert_eq!(
        call_text(&servers.tools()[0], json!({"text": "x"})).await.unwrap(),
        "{\"text\": \"x\"}"
    );
}

#[tokio::test]
async fn server_that_exits_is_reported_with_its_status_in_every_phase() {
    let folder = TestFolder::new();
    let ended = "the MCP server `fake` has ended (exit code 3): out of cheese\n";
    for method in ["initialize", "tools/list"] {
        let error = folder.start_error(server(json!({"tools": [], "exits": method}))).await;
        assert_eq!(error.trim_end(), ended.trim_end());
    }
    let plan = json!({"tools": [tool("t")], "exits": "tools/call"});
    let servers = folder.start(&[server(plan)]).await.unwrap();
    // Later calls report the same.
    for _ in 0..2 {
        let error = call_text(&servers.tools()[0], json!({})).await.unwrap_err();
        assert_eq!(error.trim_end(), ended.trim_end());
    }
}

#[tokio::test]
async fn first_of_several_tools_with_one_name_is_offered() {
    let folder = TestFolder::new();
    let second = json!({"name": "t", "description": "Another.", "inputSchema": {}});
    let servers =
        folder.start(&[server(json!({"tools": [tool("t"), second, tool("u")]}))]).await.unwrap();
    assert_eq!(names(&servers), ["fake__t", "fake__u"]);
    assert_eq!(servers.tools()[0].definition().description, "Repeats its argument.");
}

#[tokio::test]
async fn invalid_schema_is_an_error_unless_the_tool_is_not_selected() {
    let folder = TestFolder::new();
    let bad = json!({"name": "bad", "inputSchema": {"type": "objekt"}});
    let plan = server(json!({"tools": [bad, tool("good")]}));
    let error = folder.start_error(plan.clone()).await;
    let prefix = "the MCP server `fake`: the arguments of its tool `bad` are ";
    assert!(error.starts_with(prefix) && error.contains("objekt"), "{error}");
    let only = plan.tools(vec!["good".to_owned()]);
    assert_eq!(names(&folder.start(&[only]).await.unwrap()), ["fake__good"]);
}

#[tokio::test]
async fn missing_tool_or_program_is_an_error() {
    let folder = TestFolder::new();
    let plan = server(json!({"tools": [tool("a"), tool("b")]}));
    let error = folder.start_error(plan.tools(vec!["c".to_owned()])).await;
    assert_eq!(error, "the MCP server `fake` has no tool `c`; it has a, b");
    let command = vec!["no-such-server".into()];
    let error = folder.start_error(McpServer::new("x", command)).await;
    let prefix = "the MCP server `x`: cannot start `no-such-server`: ";
    assert!(error.starts_with(prefix), "{error}");
}

#[tokio::test]
async fn server_has_its_own_environment_variables() {
    let folder = TestFolder::new();
    let variables = [("SHOP".to_owned(), "tea-$NAME".to_owned())];
    let environment = |name: &str| (name == "NAME").then(|| "house".to_owned());
    let server = server(json!({ "tools": [tool("where")] }));
    let server = server.environment(&variables, &environment).unwrap();
    let servers = folder.start(&[server]).await.unwrap();
    let seen = call_text(&servers.tools()[0], json!({})).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&seen).unwrap()["shop"], "tea-house");
}

//! Event streams of coding agents and the output parsed from them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{AgentOutput, CodingAgent};
use bakeoff_core::{NanoDollars, Usage};
use std::ffi::OsString;

fn parse(agent: CodingAgent, lines: &[&str]) -> AgentOutput {
    let mut parser = agent.parser();
    // Chunks do not align with lines.
    lines.join("\n").as_bytes().chunks(7).for_each(|chunk| parser.push(chunk));
    parser.finish()
}

fn tools(output: &AgentOutput) -> Vec<String> {
    output.tool_uses.iter().map(|tool| format!("{} {}", tool.name, tool.arguments)).collect()
}

fn usage(
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
) -> Option<Usage> {
    Some(Usage { input, output, cache_read, cache_write, reasoning })
}

fn command_line(agent: CodingAgent, model: Option<&str>, more: &[&str]) -> String {
    let more: Vec<OsString> = more.iter().map(OsString::from).collect();
    let arguments = agent.arguments(model, &more).into_iter();
    arguments.map(|argument| argument.into_string().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn agents_get_arguments_for_an_event_stream_without_confirmations() {
    let table = [
        (
            "claude",
            "-p - --dangerously-skip-permissions --output-format stream-json --verbose",
            "-p - --dangerously-skip-permissions --model M --output-format stream-json --verbose --x",
        ),
        (
            "codex",
            "exec --yolo --json --skip-git-repo-check -- -",
            "exec -m M --yolo --json --skip-git-repo-check --x -- -",
        ),
        (
            "gemini",
            "--prompt - --output-format stream-json --yolo",
            "--prompt - --output-format stream-json --yolo --model M --x",
        ),
        (
            "opencode",
            "run --dangerously-skip-permissions --format json -",
            "-m M run --dangerously-skip-permissions --format json --x -",
        ),
        (
            "cursor-agent",
            "--print --output-format stream-json --force",
            "--print --output-format stream-json --model M --force --x",
        ),
        ("pi", "--mode rpc", "--mode rpc --model M --x"),
        (
            "aikit",
            "run --agent aikit --yolo --events",
            "run --agent aikit --yolo --events --model M --x",
        ),
    ];
    for (name, plain, full) in table {
        let agent = CodingAgent::find(name).unwrap();
        assert_eq!(agent.name(), name);
        assert_eq!(command_line(agent, None, &[]), plain);
        assert_eq!(command_line(agent, Some("M"), &["--x"]), full);
        // A blank model counts as absent.
        assert_eq!(command_line(agent, Some(" "), &[]), plain);
    }
    assert_eq!(CodingAgent::find("agent"), Some(CodingAgent::Cursor));
    assert_eq!(CodingAgent::find("emacs"), None);
}

const CLAUDE: [&str; 6] = [
    r#"{"type":"system","subtype":"init","cwd":"/w","tools":["Bash"],"skills":["pdf"]}"#,
    r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Let me look."}],"usage":{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":100}},"parent_tool_use_id":null}"#,
    r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"output_tokens":9,"cache_read_input_tokens":100}},"parent_tool_use_id":null}"#,
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt"}]}}"#,
    r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"helper"}],"usage":{"input_tokens":1,"output_tokens":1}},"parent_tool_use_id":"t1"}"#,
    r#"{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"There is a.txt."}],"usage":{"input_tokens":2,"output_tokens":4,"cache_creation_input_tokens":7}},"parent_tool_use_id":null}"#,
];

#[test]
fn claude_stream_is_parsed() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"There is a.txt.","num_turns":2,"total_cost_usd":0.0123,"usage":{"input_tokens":3,"cache_creation_input_tokens":4807,"cache_read_input_tokens":11219,"output_tokens":40}}"#;
    let output = parse(CodingAgent::Claude, &[&CLAUDE[..], &[result]].concat());
    assert_eq!(output.answer.as_deref(), Some("There is a.txt."));
    assert_eq!(tools(&output), [r#"Bash {"command":"ls"}"#]);
    assert_eq!((output.turns, output.cost), (Some(2), Some(NanoDollars(12_300_000))));
    assert_eq!(output.usage, usage(3, 40, 11219, 4807, 0));
    assert_eq!(output.problem, None);
    // A terminated agent has no result event, but used tokens.
    let partial = parse(CodingAgent::Claude, &CLAUDE);
    assert_eq!(partial.usage, usage(6, 14, 100, 7, 0));
    assert_eq!((partial.answer.as_deref(), partial.turns), (Some("There is a.txt."), Some(3)));
}

#[test]
fn claude_failures_are_parsed() {
    let limit = r#"{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1760000000","usage":{"input_tokens":0,"output_tokens":0}}"#;
    let output = parse(CodingAgent::Claude, &[CLAUDE[1], limit]);
    assert_eq!(output.problem.as_deref(), Some("Claude AI usage limit reached|1760000000"));
    assert!(output.answer.is_none() && !output.hit_own_limit());
    let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":false,"num_turns":9}"#;
    let output = parse(CodingAgent::Claude, &[turns]);
    assert_eq!(output.problem.as_deref(), Some("error_max_turns"));
    assert!(output.hit_own_limit());
}

#[test]
fn codex_stream_is_parsed() {
    let output = parse(
        CodingAgent::Codex,
        &[
            "Reading prompt from stdin...",
            r#"{"type":"thread.started","thread_id":"0199-429"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"bash -lc ls","status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"bash -lc ls","aggregated_output":"a\n","exit_code":0,"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"look","arguments":{"q":1}}}"#,
            r#"{"type":"error","message":"Reconnecting... 1/5 (429 Too Many Requests)"}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Done."}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":8058,"cached_input_tokens":6912,"output_tokens":30,"reasoning_output_tokens":8}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":0,"output_tokens":1}}"#,
        ],
    );
    assert_eq!(output.answer.as_deref(), Some("Done."));
    assert_eq!(
        tools(&output),
        [r#"command_execution {"command":"bash -lc ls"}"#, r#"look {"q":1}"#]
    );
    assert_eq!(output.usage, usage(1246, 31, 6912, 0, 8));
    // The agent continued after the error.
    assert_eq!((output.problem, output.cost, output.turns), (None, None, Some(1)));
    let failed = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}"#;
    let output = parse(CodingAgent::Codex, &[failed]);
    assert_eq!(output.problem.as_deref(), Some("You've hit your usage limit."));
}

#[test]
fn gemini_stream_is_parsed() {
    let output = parse(
        CodingAgent::Gemini,
        &[
            r#"{"type":"init","session_id":"s","model":"gemini-2.5-pro"}"#,
            r#"{"type":"message","role":"user","content":"hi"}"#,
            r#"{"type":"message","role":"assistant","content":"I will ","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"look.","delta":true}"#,
            r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"ls"}}"#,
            r#"{"type":"tool_result","tool_id":"1","status":"success","output":"a"}"#,
            r#"{"type":"message","role":"assistant","content":"It ","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"is a.","delta":true}"#,
            r#"{"type":"result","status":"success","stats":{"total_tokens":7100,"input_tokens":7003,"output_tokens":90,"cached":6637,"duration_ms":5,"tool_calls":1}}"#,
        ],
    );
    assert_eq!(output.answer.as_deref(), Some("It is a."));
    assert_eq!(tools(&output), [r#"run_shell_command {"command":"ls"}"#]);
    assert_eq!((output.usage, output.turns), (usage(366, 90, 6637, 0, 0), Some(2)));
    let failed = r#"{"type":"result","status":"error","error":{"type":"Error","message":"Quota exceeded"},"stats":{}}"#;
    assert_eq!(parse(CodingAgent::Gemini, &[failed]).problem.as_deref(), Some("Quota exceeded"));
}

#[test]
fn opencode_stream_is_parsed() {
    let output = parse(
        CodingAgent::OpenCode,
        &[
            r#"{"type":"step_start","timestamp":1,"sessionID":"s","part":{"type":"step-start"}}"#,
            r#"{"type":"text","sessionID":"s","part":{"type":"text","text":"Looking."}}"#,
            r#"{"type":"tool_use","sessionID":"s","part":{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a"}}}"#,
            r#"{"type":"step_finish","sessionID":"s","part":{"type":"step-finish","cost":0.01,"tokens":{"total":8011,"input":7952,"output":35,"reasoning":24,"cache":{"read":0,"write":0}}}}"#,
            r#"{"type":"text","sessionID":"s","part":{"type":"text","text":"It is a."}}"#,
            r#"{"type":"step_finish","sessionID":"s","part":{"type":"step-finish","cost":0.02,"tokens":{"total":62,"input":10,"output":20,"reasoning":5,"cache":{"read":30,"write":2}}}}"#,
        ],
    );
    assert_eq!(output.answer.as_deref(), Some("It is a."));
    assert_eq!(tools(&output), [r#"bash {"command":"ls"}"#]);
    // The total of the first step includes reasoning separately; that of the second does not.
    assert_eq!(output.usage, usage(7962, 79, 30, 2, 29));
    assert_eq!((output.cost, output.turns), (Some(NanoDollars(30_000_000)), Some(2)));
    let failed = r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"slow down","statusCode":429}}}"#;
    assert_eq!(parse(CodingAgent::OpenCode, &[failed]).problem.as_deref(), Some("429: slow down"));
}

#[test]
fn cursor_stream_is_parsed() {
    let output = parse(
        CodingAgent::Cursor,
        &[
            r#"{"type":"system","subtype":"init","cwd":"/w"}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Looking."}]}}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"ls"}}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"ls"},"result":{"success":{"stdout":"a"}}}}}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"It is a."}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Looking.It is a.","duration_ms":5,"usage":{"inputTokens":2,"outputTokens":33,"cacheReadTokens":12228,"cacheWriteTokens":4}}"#,
        ],
    );
    assert_eq!(output.answer.as_deref(), Some("Looking.It is a."));
    assert_eq!(tools(&output), [r#"shell {"command":"ls"}"#]);
    assert_eq!((output.usage, output.turns), (usage(2, 33, 12228, 4, 0), Some(2)));
}

#[test]
fn size_of_tool_arguments_is_limited() {
    let call = |size: usize| {
        format!(
            r#"{{"type":"tool_use","tool_name":"write","parameters":{{"text":"{}"}}}}"#,
            "x".repeat(size)
        )
    };
    let lines = [call(600_000), call(600_000), call(10)];
    let output = parse(CodingAgent::Gemini, &lines.each_ref().map(String::as_str));
    let output: Vec<bool> = output.tool_uses.iter().map(|tool| !tool.arguments.is_null()).collect();
    assert_eq!(output, [true, false, true]);
}

#[test]
fn invalid_lines_are_ignored() {
    for agent in CodingAgent::ALL {
        let lines = ["", "{", "[1]", "null", r#"{"type":7}"#, r#"{"type":"result"}"#, "\u{0}"];
        let output = parse(agent, &lines);
        assert_eq!((output.answer, output.tool_uses.len()), (None, 0), "{agent:?}");
    }
}

#[test]
fn dropped_content_is_counted() {
    let long = "x".repeat(600_000);
    let event = |command: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","name":"Bash","input":{{"command":"{command}"}}}}]}}}}"#
        )
    };
    let lines: Vec<String> = [&*long, &*long, "ls"].map(event).to_vec();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let output = parse(CodingAgent::Claude, &lines);
    assert_eq!(output.tool_uses.len(), 3);
    assert_eq!((output.dropped_tool_uses, output.dropped_arguments), (0, 1));
    // More tool uses than the limit.
    let small = event("ls");
    let output = parse(CodingAgent::Claude, &vec![small.as_str(); 10_003]);
    assert_eq!((output.tool_uses.len(), output.dropped_tool_uses), (10_000, 3));
    // A line that is too long or too deeply nested may contain anything, even the answer.
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    for line in [format!("{{\"a\":\"{}\"}}", "x".repeat(9 << 20)), deep] {
        let output = parse(CodingAgent::Claude, &[&line]);
        assert_eq!(output.dropped_tool_uses, 1);
        assert_eq!(output.dropped_answer_bytes, line.len() as u64);
        let result = r#"{"type":"result","result":"fixed","usage":{}}"#;
        let output = parse(CodingAgent::Claude, &[&line, result]);
        assert_eq!((output.dropped_answer_bytes, output.answer.as_deref()), (0, Some("fixed")));
    }
}

#[test]
fn size_of_an_answer_in_parts_is_limited() {
    let part = format!(
        r#"{{"type":"message","role":"assistant","delta":true,"content":"{}"}}"#,
        "é".repeat(300_000)
    );
    let output = parse(CodingAgent::Gemini, &[&part, &part]);
    assert_eq!(output.answer.unwrap().len() as u64 + output.dropped_answer_bytes, 1_200_000);
    assert!(output.dropped_answer_bytes > 0);
}

#[test]
fn size_of_tool_names_is_limited() {
    let name = "x".repeat(600_000);
    let event = format!(r#"{{"type":"tool_use","tool_name":"{name}","parameters":{{}}}}"#);
    let output = parse(CodingAgent::Gemini, &[&event, &event]);
    assert_eq!((output.tool_uses.len(), output.dropped_tool_uses), (1, 1));
}

#[test]
fn memory_of_the_parser_is_bounded() {
    let id = |number: usize| format!("{number}-{}", "x".repeat(200));
    let events: [(CodingAgent, &dyn Fn(usize) -> String); 3] = [
        (CodingAgent::Claude, &|number| {
            let usage = r#"{"input_tokens":1,"output_tokens":2}"#;
            format!(r#"{{"type":"assistant","message":{{"id":"{}","usage":{usage}}}}}"#, id(number))
        }),
        (CodingAgent::Codex, &|number| {
            format!(
                r#"{{"type":"item.started","item":{{"type":"web_search","id":"{}"}}}}"#,
                id(number)
            )
        }),
        (CodingAgent::Cursor, &|number| {
            format!(
                r#"{{"type":"tool_call","call_id":"{}","tool_call":{{"xToolCall":{{}}}}}}"#,
                id(number)
            )
        }),
    ];
    for (agent, event) in events {
        let mut parser = agent.parser();
        for number in 0..20_000 {
            // Each event is repeated.
            parser.push(format!("{0}\n{0}\n", event(number)).as_bytes());
        }
        let size = format!("{parser:?}").len();
        assert!(size < 2_000_000, "{agent:?}: {size}");
        let output = parser.finish();
        if agent == CodingAgent::Claude {
            assert_eq!(
                (output.turns, output.usage),
                (Some(20_000), usage(20_000, 40_000, 0, 0, 0))
            );
        } else {
            assert_eq!((output.tool_uses.len(), output.dropped_tool_uses), (10_000, 10_000));
        }
    }
}

#[test]
fn missing_usage_is_unknown() {
    let claude = r#"{"type":"result","result":"fixed"}"#;
    assert_eq!(parse(CodingAgent::Claude, &[claude]).usage, None);
    let message = r#"{"type":"assistant","message":{"id":"m","content":[]}}"#;
    let partial = parse(CodingAgent::Claude, &[message]);
    assert_eq!((partial.usage, partial.turns), (None, Some(1)));
    let codex = r#"{"type":"turn.completed"}"#;
    assert_eq!(parse(CodingAgent::Codex, &[codex]).usage, None);
    let gemini = r#"{"type":"result","status":"success"}"#;
    assert_eq!(parse(CodingAgent::Gemini, &[gemini]).usage, None);
    let step = r#"{"type":"step_finish","part":{}}"#;
    assert_eq!(parse(CodingAgent::OpenCode, &[step]).usage, None);
}

/// Formats the results of tools: id, name, output and whether it is an error.
fn results(output: &AgentOutput) -> Vec<String> {
    assert_eq!(output.tool_uses.len(), output.tool_exchanges.len());
    let exchanges = output.tool_uses.iter().zip(&output.tool_exchanges);
    let show = |(tool, exchange): (&bakeoff_core::ToolUse, &bakeoff_agent::ToolExchange)| {
        let result = exchange.result.as_ref();
        let result = result.map(|result| format!("{:?} {}", result.output, result.is_error));
        format!("{} {} {}", exchange.id, tool.name, result.unwrap_or("-".to_owned()))
    };
    exchanges.map(show).collect()
}

#[test]
fn results_of_tools_are_parsed() {
    let table: [(CodingAgent, &[&str], &[&str]); 5] = [
        (
            CodingAgent::Claude,
            &[
                r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}},{"type":"tool_use","id":"c","name":"Glob","input":{}}]}}"#,
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"is_error":true}]}}"#,
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}}"#,
                r#"{"type":"user","message":{"content":"a prompt"}}"#,
            ],
            &[r#"a Bash "ok" false"#, r#"b Read "one\ntwo" true"#, "c Glob -"],
        ),
        (
            CodingAgent::Codex,
            &[
                r#"{"type":"item.started","item":{"id":"1","type":"command_execution","command":"ls"}}"#,
                r#"{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"ls","aggregated_output":"no","exit_code":2}}"#,
                r#"{"type":"item.completed","item":{"id":"2","type":"mcp_tool_call","tool":"find","arguments":{},"result":{"content":[{"type":"text","text":"found"}]},"error":null}}"#,
            ],
            &[r#"1 command_execution "no" true"#, r#"2 find "found" false"#],
        ),
        (
            CodingAgent::Gemini,
            &[
                r#"{"type":"tool_use","tool_name":"run","tool_id":"x","parameters":{}}"#,
                r#"{"type":"tool_result","tool_id":"x","status":"success","output":"done"}"#,
            ],
            &[r#"x run "done" false"#],
        ),
        (
            CodingAgent::OpenCode,
            &[
                r#"{"type":"tool_use","part":{"callID":"o","tool":"bash","state":{"status":"completed","input":{},"output":"out"}}}"#,
            ],
            &[r#"o bash "out" false"#],
        ),
        (
            CodingAgent::Cursor,
            &[
                r#"{"type":"tool_call","subtype":"started","call_id":"k","tool_call":{"shellToolCall":{"args":{}}}}"#,
                r#"{"type":"tool_call","subtype":"completed","call_id":"k","tool_call":{"shellToolCall":{"args":{},"result":{"success":{"stdout":"x"}}}}}"#,
            ],
            &[r#"k shell "{\"stdout\":\"x\"}" false"#],
        ),
    ];
    for (agent, lines, expected) in table {
        assert_eq!(results(&parse(agent, lines)), expected, "{agent:?}");
    }
}

#[test]
fn long_results_of_tools_are_cut() {
    let text = "ä".repeat(6_000);
    let lines: Vec<String> = (0..200)
        .flat_map(|id| {
            [
                format!(r#"{{"type":"tool_use","tool_name":"t","tool_id":"{id}"}}"#),
                format!(
                    r#"{{"type":"tool_result","tool_id":"{id}","status":"success","output":"{text}"}}"#
                ),
            ]
        })
        .collect();
    let output = parse(CodingAgent::Gemini, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let kept: Vec<(usize, u64)> = output
        .tool_exchanges
        .iter()
        .map(|exchange| exchange.result.as_ref().unwrap())
        .map(|result| (result.output.len(), result.dropped_bytes))
        .collect();
    assert_eq!((kept[0], kept[199]), ((10_000, 2_000), (0, 12_000)));
    assert!(kept.iter().map(|(kept, _)| kept).sum::<usize>() <= 1024 * 1024);
}

const PI: [&str; 9] = [
    r#"{"type":"response","command":"prompt","success":true}"#,
    r#"{"type":"agent_start"}"#,
    r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"ls"}}"#,
    r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"a.txt"}]},"isError":false}"#,
    r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Looking."}],"usage":{"input":10,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.5}},"stopReason":"toolUse"}}"#,
    r#"{"type":"turn_end","message":{"role":"assistant","content":[{"type":"text","text":"Looking."}],"usage":{"input":10,"output":2}},"toolResults":[]}"#,
    r#"{"type":"turn_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Done."}],"usage":{"input":20,"output":5,"cost":{"total":0.25}},"stopReason":"stop"},"toolResults":[]}"#,
    r#"{"type":"agent_end","messages":[]}"#,
    r#"{"type":"agent_settled"}"#,
];

#[test]
fn pi_is_parsed_and_settles() {
    let output = parse(CodingAgent::Pi, &PI);
    assert_eq!((output.answer.as_deref(), output.turns), (Some("Done."), Some(2)));
    assert_eq!(output.usage, usage(30, 7, 3, 4, 0));
    assert_eq!(output.cost, Some(NanoDollars(750_000_000)));
    assert_eq!(tools(&output), [r#"bash {"command":"ls"}"#]);
    assert_eq!(results(&output), [r#"c1 bash "a.txt" false"#]);
    let mut parser = CodingAgent::Pi.parser();
    let settled = PI.map(|line| {
        parser.push(format!("{line}\n").as_bytes());
        parser.is_settled()
    });
    assert_eq!(settled.iter().position(|settled| *settled), Some(8));
    let input: serde_json::Value =
        serde_json::from_str(&CodingAgent::Pi.input("say \"hi\"\nnow")).unwrap();
    assert_eq!(input, serde_json::json!({"type": "prompt", "message": "say \"hi\"\nnow"}));
    let rejected = r#"{"type":"response","command":"prompt","success":false,"error":"No API key"}"#;
    let mut parser = CodingAgent::Pi.parser();
    parser.push(format!("{rejected}\n").as_bytes());
    assert!(parser.is_settled());
    assert_eq!(parser.finish().problem.as_deref(), Some("No API key"));
}

#[test]
fn aikit_is_parsed_in_both_forms() {
    let lines = [
        r#"{"agent_key":"aikit","seq":1,"stream":"stdout","payload":{"aikit_tool_use":{"tool_name":"bash","tool_input":{"command":"ls"},"call_id":"1"}}}"#,
        r#"{"agent_key":"aikit","seq":2,"stream":"stdout","payload":{"aikit_tool_result":{"call_id":"1","output":"a.txt","is_error":false}}}"#,
        r#"{"agent_key":"aikit","seq":3,"stream":"stdout","payload":{"tool_use":{"tool_name":"read","input":{},"call_id":"2"}}}"#,
        r#"{"agent_key":"aikit","seq":4,"stream":"stdout","payload":{"tool_result":{"call_id":"2","output":"no","is_error":true}}}"#,
        r#"{"agent_key":"aikit","seq":5,"stream":"stdout","payload":{"aikit_text_final":{"content":"Done.","turn_id":null}}}"#,
        r#"{"agent_key":"aikit","seq":6,"stream":"stdout","payload":{"aikit_step_finish":{"iteration":1,"finish_reason":"stop"}}}"#,
        r#"{"agent_key":"aikit","seq":7,"stream":"stdout","payload":{"token_usage_line":{"usage":{"input_tokens":7,"output_tokens":3,"cache_read_tokens":null},"source":"Aikit","raw_agent_line_seq":6}}}"#,
    ];
    let output = parse(CodingAgent::Aikit, &lines);
    assert_eq!((output.answer.as_deref(), output.turns), (Some("Done."), Some(1)));
    assert_eq!(output.usage, usage(7, 3, 0, 0, 0));
    assert_eq!(results(&output), [r#"1 bash "a.txt" false"#, r#"2 read "no" true"#]);
    let quota = r#"{"payload":{"quota_exceeded":{"info":{"raw_message":"insufficient_quota"}}}}"#;
    let problem = parse(CodingAgent::Aikit, &[quota]).problem;
    assert_eq!(problem.as_deref(), Some("insufficient_quota"));
}

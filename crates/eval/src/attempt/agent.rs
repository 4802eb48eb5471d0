//! Model targets with tools: an agent loop in a workspace.

use super::agent_output::{AgentCalls, AgentRun, agent_attempt, redacted, tool_exchanges};
use super::attachments::LoadedAttachments;
use super::workspace::{add_files, create_workspace, read_files, workspace_environment};
use super::{AttemptOutput, TrialInput, redact_tool_exchanges, sample, trial_id};
use crate::context::TrialContext;
use crate::trace::Trace;
use crate::trial::failed;
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, CallScope, ContextConfig,
    EventReceiver, ExecutionLimits, FetchAccess, Identity, McpServers, Tool, Workbench, agent_loop,
    built_in_tool, event_channel,
};
use bakeoff_core::{Attempt, ErrorKind, Event, Message, ProcessGroup, TrialError, TrialKey};
use bakeoff_suite::{AgentSettings, ModelTarget, Target};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Time in which MCP servers must list their tools: some are installed first.
const MCP_START_TIMEOUT: Duration = Duration::from_secs(60);

/// Capacity of the channel of loop events; retry events beyond it are dropped.
const LOOP_EVENT_QUEUE: usize = 64;

/// Capacity of the channel of started programs; tools wait when it is full.
const PROGRAM_QUEUE: usize = 16;

/// Runs the agent loop in a workspace.
pub(super) async fn run_agent(
    context: &TrialContext,
    model: &ModelTarget,
    settings: &AgentSettings,
    target: &Target,
    input: TrialInput<'_>,
) -> AttemptOutput {
    let system = model.system.as_ref().map(|system| system.render(&input.case.fields));
    let system = match system.transpose() {
        Ok(system) => system.unwrap_or_default(),
        Err(reason) => return failed(ErrorKind::Template, format!("system: {reason}")).into(),
    };
    let attachments = match LoadedAttachments::load(input.case).await {
        Ok(attachments) => attachments,
        Err(attempt) => return attempt.into(),
    };
    let records = attachments.records().to_vec();
    let workspace = create_workspace(context, settings.workspace.as_deref(), &input).await;
    let workspace = match workspace {
        Ok(workspace) => workspace,
        Err(error) => return Attempt { error: Some(error), ..Attempt::default() }.into(),
    };
    let (started, programs) = mpsc::channel(PROGRAM_QUEUE);
    let bench = workbench(context, settings, &input, workspace.start(), started);
    let identity = bench.identity.clone();
    let config = loop_config(context, model, settings, sample(target, input.key), &input);
    let prompt = attachments.message(input.prompt.clone());
    let work = run_loop(context, settings, config, &input, (system, prompt), bench);
    let (run, ()) = tokio::join!(work, emit_programs(context, input.key, programs));
    if let Some(identity) = identity.filter(|_| settings.starts_programs()) {
        // Processes that still run could change the workspace. Joining fails only if the runtime shuts
        // down.
        let _ = tokio::task::spawn_blocking(move || identity.kill()).await;
    }
    let (left, workspace) = read_files(workspace).await;
    let (mut tools, mut extra) = (Vec::new(), Vec::new());
    let mut attempt = match run {
        Ok(AgentRun { end, calls }) => {
            tools = redact_tool_exchanges(tool_exchanges(&end), &context.redactor);
            extra = calls.extra;
            agent_attempt(context, model, end, &calls.usages, input.timeout)
        }
        Err(error) => Attempt { error: Some(redacted(context, error)), ..Attempt::default() },
    };
    add_files(context, &mut attempt, left);
    let mut request = json!({
        "prompt": context.redactor.scrub(input.prompt),
        "model": model.label,
        "tools": settings.tools,
    });
    if !records.is_empty() {
        request["attachments"] = records.into();
    }
    let trace = Trace::new(context.suite.settings.artifacts, request, &attempt);
    let trace = Trace { extra, tools, ..trace };
    AttemptOutput { attempt, trace, workspace: Some(workspace) }
}

/// Returns the environment in which tools work.
fn workbench(
    context: &TrialContext,
    settings: &AgentSettings,
    input: &TrialInput<'_>,
    folder: &Path,
    started: mpsc::Sender<ProcessGroup>,
) -> Workbench {
    let mut bench = Workbench::in_folder(folder);
    bench.environment = workspace_environment(context, folder);
    bench.identity = Some(Identity {
        run: context.folder.id.to_string(),
        trial: Some(trial_id(input.key)),
        part: None,
    });
    bench.started = Some(started);
    bench.command_timeout = settings.tool_timeout;
    bench.transport = Some(Arc::clone(&context.transport));
    bench.fetch = (!settings.fetch_hosts.is_empty()).then(|| FetchAccess {
        transport: Arc::clone(&context.transport),
        hosts: settings.fetch_hosts.clone(),
    });
    bench
}

/// Emits the programs that tools start, until all tools are dropped.
async fn emit_programs(
    context: &TrialContext,
    key: &TrialKey,
    mut programs: mpsc::Receiver<ProcessGroup>,
) {
    while let Some(group) = programs.recv().await {
        // Sending fails only after the run has ended, and ending the run ends the program.
        let _ = context.events.send(Event::ProgramStarted { key: key.clone(), group }).await;
    }
}

async fn run_loop(
    context: &TrialContext,
    settings: &AgentSettings,
    mut config: AgentLoopConfig,
    input: &TrialInput<'_>,
    (system_prompt, prompt): (String, Message),
    bench: Workbench,
) -> Result<AgentRun, TrialError> {
    let started = Instant::now();
    let error = |kind, message| TrialError { kind, message };
    let starting = McpServers::start(&settings.mcp, &bench, input.timeout.min(MCP_START_TIMEOUT));
    let servers = tokio::select! {
        biased;
        () = context.abort.cancelled() => {
            return Err(error(ErrorKind::Cancelled, "cancelled".to_owned()));
        }
        servers = starting => servers.map_err(|reason| {
            let code = if reason.is_exhaustion() { " [EVAL_PARALLEL_EXHAUSTION]" } else { "" };
            error(ErrorKind::Process, format!("{reason}{code}"))
        })?,
    };
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for name in &settings.tools {
        let tool = built_in_tool(name, &bench)
            .map_err(|reason| error(ErrorKind::Process, reason.to_string()))?;
        tools.push(tool);
    }
    tools.extend_from_slice(servers.tools());
    let history = input.case.history.iter().cloned().map(AgentMessage::from).collect();
    let mut agent_context = AgentContext::default()
        .with_system_prompt(system_prompt)
        .with_messages(history)
        .with_tools(tools);
    config.limits.max_time = input.timeout.saturating_sub(started.elapsed());
    let (sender, events) = event_channel(LOOP_EVENT_QUEUE);
    let prompts = vec![AgentMessage::from(prompt)];
    let looping = agent_loop(prompts, &mut agent_context, &config, sender, context.abort.clone());
    let (end, calls) = tokio::join!(looping, follow_events(context, events, input.key));
    servers.close().await;
    let end = end.map_err(|reason| error(ErrorKind::Process, reason.to_string()))?;
    Ok(AgentRun { end, calls })
}

fn loop_config(
    context: &TrialContext,
    model: &ModelTarget,
    settings: &AgentSettings,
    sample: String,
    input: &TrialInput<'_>,
) -> AgentLoopConfig {
    let limits = ExecutionLimits::default()
        .max_turns(settings.max_turns)
        .max_tokens(u64::MAX)
        .max_time(input.timeout);
    let mut scope = CallScope::default();
    scope.run = context.run;
    scope.sample = sample;
    scope.trial = input.key.trial;
    scope.stop = context.stop.clone();
    let mut config = AgentLoopConfig::new(&context.client, model.model.clone())
        .request(model.request.clone())
        .limits(limits)
        .tool_timeout(settings.tool_timeout)
        .scope(scope);
    config.context_config = settings.max_context_tokens.map(ContextConfig::new);
    config
}

/// Emits retries until the loop has ended. Returns what is known about each call.
async fn follow_events(
    context: &TrialContext,
    mut events: EventReceiver,
    key: &TrialKey,
) -> AgentCalls {
    let mut calls = AgentCalls::default();
    while let Some(event) = events.recv().await {
        match event {
            AgentEvent::Retry { delay_ms, reason, .. } => {
                let key = key.clone();
                let _ = context.events.try_send(Event::Retry { key, delay_ms, reason });
            }
            AgentEvent::TurnEnd { turn, usage, extra, .. } => {
                calls.usages.push(usage);
                if !extra.is_empty() {
                    calls.extra.push((turn, extra));
                }
            }
            _ => {}
        }
    }
    calls
}

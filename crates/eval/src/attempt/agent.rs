//! A model works with tools.

use super::workspace::left_in;
use super::{sample, shallow, trial_id, without_secrets};
use crate::trial::{Asked, Attempted, Trials, failed, milliseconds};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, Behalf, ContextConfig, EventReceiver,
    ExecutionLimits, FetchAccess, Identity, Limit, LoopEnd, LoopStatus, McpServers, Tool,
    Workbench, agent_loop, built_in_tool, event_channel,
};
use bakeoff_core::{
    Attempt, Content, ErrorKind, Event, Message, NanoDollars, ProcessGroup, Redactor, Timing,
    ToolUse, TrialError, TrialKey, Usage,
};
use bakeoff_suite::{AgentSettings, CacheScope, ModelTarget, Target};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Most bytes kept of what was said.
const MOST_TRANSCRIPT: usize = 1024 * 1024;

/// How long MCP servers may take to tell their tools: some are installed first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Retries that may wait to be told; nobody needs one more.
const RETRIES_WAITING: usize = 64;

/// Programs that may wait to be told of; more of them wait to be started.
const PROGRAMS_WAITING: usize = 16;

/// A loop that has ended, and the tokens of each of its calls.
struct Worked {
    end: LoopEnd,
    calls: Vec<Usage>,
}

impl Trials {
    /// Lets the model work in a workspace of its own.
    pub(crate) async fn run_agent(
        &self,
        target: &ModelTarget,
        agent: &AgentSettings,
        whole: &Target,
        asked: Asked<'_>,
    ) -> Attempted {
        let system = target.system.as_ref().map(|system| system.render(&asked.case.fields));
        let system = match system.transpose() {
            Ok(system) => system.unwrap_or_default(),
            Err(reason) => return failed(ErrorKind::Template, format!("system: {reason}")).into(),
        };
        let workspace = match self.workspace(agent.workspace.as_deref(), &asked).await {
            Ok(workspace) => workspace,
            Err(error) => return Attempt { error: Some(error), ..Attempt::default() }.into(),
        };
        let (started, programs) = mpsc::channel(PROGRAMS_WAITING);
        let bench = self.bench(agent, &asked, workspace.start(), started);
        let identity = bench.identity.clone();
        let config = self.loop_config(target, agent, sample(whole, asked.key), &asked);
        let work = self.work(agent, config, &asked, system, bench);
        let (worked, ()) = tokio::join!(work, self.tell_programs(asked.key, programs));
        if let Some(identity) = identity.filter(|_| agent.starts_programs()) {
            // What still runs would go on writing. Only a broken runtime loses the task.
            let _ = tokio::task::spawn_blocking(move || identity.kill()).await;
        }
        let (left, workspace) = left_in(workspace).await;
        let mut attempt = match worked {
            Ok(worked) => self.worked(target, worked, asked.timeout),
            Err(error) => Attempt {
                error: Some(TrialError { message: self.redactor.scrub(error.message), ..error }),
                ..Attempt::default()
            },
        };
        self.add_files(&mut attempt, left);
        let request = json!({
            "prompt": self.redactor.scrub(asked.prompt),
            "model": target.label,
            "tools": agent.tools,
        });
        let trace = self.trace(request, &attempt);
        Attempted { attempt, trace, workspace: Some(workspace) }
    }

    /// Where and how the tools work.
    fn bench(
        &self,
        agent: &AgentSettings,
        asked: &Asked<'_>,
        folder: &Path,
        started: mpsc::Sender<ProcessGroup>,
    ) -> Workbench {
        Workbench {
            folder: folder.to_owned(),
            environment: self.surroundings(folder),
            identity: Some(Identity {
                run: self.folder.id.to_string(),
                trial: Some(trial_id(asked.key)),
                part: None,
            }),
            started: Some(started),
            command_timeout: agent.tool_timeout,
            fetch: (!agent.fetch_hosts.is_empty()).then(|| FetchAccess {
                transport: Arc::clone(&self.transport),
                hosts: agent.fetch_hosts.clone(),
            }),
        }
    }

    /// Tells of the programs that tools start, until no tool is left.
    async fn tell_programs(&self, key: &TrialKey, mut programs: mpsc::Receiver<ProcessGroup>) {
        while let Some(group) = programs.recv().await {
            // Nobody listens any more when the run has ended, and then it ends this, too.
            let _ = self.events.send(Event::ProgramStarted { key: key.clone(), group }).await;
        }
    }

    async fn work(
        &self,
        agent: &AgentSettings,
        mut config: AgentLoopConfig,
        asked: &Asked<'_>,
        system_prompt: String,
        bench: Workbench,
    ) -> Result<Worked, TrialError> {
        let started = Instant::now();
        let error = |kind, message| TrialError { kind, message };
        let starting = McpServers::start(&agent.mcp, &bench, asked.timeout.min(PATIENCE));
        let servers = tokio::select! {
            biased;
            () = self.abort.cancelled() => {
                return Err(error(ErrorKind::Cancelled, "cancelled".to_owned()));
            }
            servers = starting => servers.map_err(|reason| {
                let code = if reason.is_exhaustion() { " [EVAL_PARALLEL_EXHAUSTION]" } else { "" };
                error(ErrorKind::Process, format!("{reason}{code}"))
            })?,
        };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for name in &agent.tools {
            let tool = built_in_tool(name, &bench)
                .map_err(|reason| error(ErrorKind::Process, reason.to_string()))?;
            tools.push(tool);
        }
        tools.extend_from_slice(servers.tools());
        let mut context = AgentContext { system_prompt, tools, ..AgentContext::default() };
        config.limits.max_time = asked.timeout.saturating_sub(started.elapsed());
        let (tx, events) = event_channel(RETRIES_WAITING);
        let prompts = vec![AgentMessage::user(asked.prompt.as_str())];
        let looping = agent_loop(prompts, &mut context, &config, tx, self.abort.clone());
        let (end, calls) = tokio::join!(looping, self.follow(events, asked.key));
        servers.close().await;
        let end = end.map_err(|reason| error(ErrorKind::Process, reason.to_string()))?;
        Ok(Worked { end, calls })
    }

    fn loop_config(
        &self,
        target: &ModelTarget,
        agent: &AgentSettings,
        sample: String,
        asked: &Asked<'_>,
    ) -> AgentLoopConfig {
        let limits = ExecutionLimits {
            max_turns: agent.max_turns,
            max_tokens: u64::MAX,
            max_time: asked.timeout,
            max_cost: None,
        };
        AgentLoopConfig {
            request: target.request.clone(),
            limits,
            context_config: agent.max_context_tokens.map(|max_context_tokens| ContextConfig {
                max_context_tokens,
                ..ContextConfig::default()
            }),
            tool_timeout: agent.tool_timeout,
            behalf: Behalf {
                run: self.run,
                sample,
                trial: asked.key.trial,
                stop: self.stop.clone(),
            },
            ..AgentLoopConfig::new(&self.client, target.model.clone())
        }
    }

    /// Tells of retries until the loop has ended. Gives the tokens of each call.
    async fn follow(&self, mut events: EventReceiver, key: &TrialKey) -> Vec<Usage> {
        let mut calls = Vec::new();
        while let Some(event) = events.recv().await {
            match event {
                AgentEvent::Retry { delay_ms, reason, .. } => {
                    let key = key.clone();
                    let _ = self.events.try_send(Event::Retry { key, delay_ms, reason });
                }
                AgentEvent::TurnEnd { usage, .. } => calls.push(usage),
                _ => {}
            }
        }
        calls
    }

    fn worked(&self, target: &ModelTarget, worked: Worked, timeout: Duration) -> Attempt {
        let Worked { end, calls } = worked;
        let has_answers = end.turns > 0;
        let said: Vec<&Message> =
            end.new_messages.iter().filter_map(AgentMessage::as_llm).collect();
        let (transcript, dropped_transcript_bytes) = transcript(&said, &self.redactor);
        let latency = end.latency + end.tool_time;
        let cost = match self.suite.settings.cache {
            // What this run's own cache has was paid for by this run, before it was killed.
            CacheScope::Run => calls.iter().try_fold(NanoDollars::default(), |sum, usage| {
                Some(sum.saturating_add(target.model.cost(usage)?))
            }),
            CacheScope::Shared | CacheScope::None => end.cost,
        };
        let paid = end.cost.filter(|_| has_answers && end.cached_turns > 0);
        let (note, error) = judged(&end, timeout);
        Attempt {
            output: self.redactor.scrub(end.answer()),
            finish: end.finish,
            stderr: note.unwrap_or_default(),
            tool_uses: without_secrets(tool_uses(&said), &self.redactor),
            turns: Some(end.turns),
            transcript: Some(transcript),
            dropped_transcript_bytes,
            usage: has_answers.then_some(end.usage),
            cost: cost.filter(|_| has_answers),
            // What was paid is what the cache did not have.
            saved: cost.zip(paid).map_or(NanoDollars(0), |(cost, paid)| {
                NanoDollars(cost.0.saturating_sub(paid.0).max(0))
            }),
            cached: has_answers && end.cached_turns == end.turns,
            timing: Timing {
                latency_ms: milliseconds(latency),
                retries: end.retries,
                ..Timing::default()
            },
            error: error
                .map(|error| TrialError { message: self.redactor.scrub(error.message), ..error }),
            ..Attempt::default()
        }
    }
}

/// What people should know of the end, and why there is nothing to judge. That the model was not done
/// within its turns says something about the model; that a call failed or the time was up need not.
fn judged(end: &LoopEnd, timeout: Duration) -> (Option<String>, Option<TrialError>) {
    let error = |kind, message| (None, Some(TrialError { kind, message }));
    match &end.status {
        LoopStatus::Completed => (None, None),
        LoopStatus::Failed(failure) => error(failure.kind, failure.message.clone()),
        LoopStatus::Cancelled => error(ErrorKind::Cancelled, "cancelled".to_owned()),
        LoopStatus::LimitReached(Limit::Time) => {
            let seconds = timeout.as_secs_f64();
            error(
                ErrorKind::Timeout,
                format!("still running after {seconds} s [EVAL_CASE_TIMEOUT]"),
            )
        }
        LoopStatus::LimitReached(_) => {
            let turns = end.turns;
            (Some(format!("stopped after {turns} turns (`max_turns`) before it was done\n")), None)
        }
    }
}

/// What the model called, in order.
fn tool_uses(said: &[&Message]) -> Vec<ToolUse> {
    let calls = said.iter().flat_map(|message| message.content()).filter_map(|part| match part {
        Content::ToolCall(call) => Some(call),
        _ => None,
    });
    calls
        .map(|call| ToolUse { name: call.name.clone(), arguments: shallow(call.arguments.clone()) })
        .collect()
}

/// What was said, a message per line and without secrets, as far as there is room; and how many bytes
/// there was no room for.
fn transcript(said: &[&Message], redactor: &Redactor) -> (String, u64) {
    let mut text = String::new();
    let mut dropped = 0;
    for message in said {
        let Ok(line) = serde_json::to_string(message) else { continue };
        let line = redactor.scrub(line);
        // A line that was cut could not be read, and those after it would be out of their order.
        if dropped > 0 || text.len() + line.len() >= MOST_TRANSCRIPT {
            dropped += line.len() as u64 + 1;
            continue;
        }
        text.push_str(&line);
        text.push('\n');
    }
    (text, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_ends_with_the_last_whole_message_that_fits() {
        let long = "x".repeat(MOST_TRANSCRIPT);
        let said = [Message::user("first"), Message::user(long), Message::user("last")];
        let said: Vec<&Message> = said.iter().collect();
        let whole: u64 = said
            .iter()
            .map(|message| serde_json::to_string(message).unwrap().len() as u64 + 1)
            .sum();
        let (text, dropped) = transcript(&said, &Redactor::default());
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains("first") && text.ends_with("}\n"), "{text}");
        assert_eq!(text.len() as u64 + dropped, whole);
    }
}

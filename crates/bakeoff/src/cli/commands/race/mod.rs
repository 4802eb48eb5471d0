//! `bakeoff race`: sends a prompt to several models and chooses the best answer.

mod answer_stream;
mod branches;
mod display;
mod render;
mod rules;
mod setup;
mod strategy;
mod tools;

use crate::arguments::{AnswerScope, RaceArguments};
use crate::client::{ClientOptions, ModelClient};
use crate::error::{CliError, UsageError};
use crate::exposed::warn_if_open_to_others;
use crate::models::{ModelResolver, require_price};
use crate::outcome::Outcome;
use crate::printer::{Printer, chain};
use crate::resume_command::hint_at_race;
use crate::settings;
use crate::shutdown::{Shutdown, block_on};
use bakeoff_agent::{AgentContext, AgentMessage, event_channel};
use bakeoff_core::{ExitCode, Message};
use bakeoff_race::{
    ParallelLoopResult, Race, RaceError, RecordedSession, SessionError, SessionFile,
    UnfinishedRace, VerdictKind,
};
use branches::RaceParts;
use display::RaceDisplay;
use render::RaceRenderer;
use setup::RaceSetup;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tools::BranchTools;

/// Capacity of the event channel. When it is full, pieces of streamed answers are dropped.
const EVENT_CAPACITY: usize = 1024;

/// Maximum size of a prompt in bytes. No model reads more, and endless input must not exhaust the memory.
const MAX_PROMPT_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn run(arguments: RaceArguments, printer: &Printer) -> Result<Outcome, CliError> {
    settings::raise_file_limit();
    let Some(prepared) = prepare(arguments, printer)? else {
        printer.message("discarded the interrupted race");
        return Ok(Outcome::passed().with("discarded", true));
    };
    block_on(printer, async |shutdown| prepared.run(&shutdown, printer).await)
}

/// A race whose tools have not been started.
struct PreparedRace {
    input: RaceInput,
    session: Option<SessionFile>,
    /// Path of the session, which is created with the race if it is missing.
    path: Option<PathBuf>,
    context: AgentContext,
    setup: RaceSetup,
    parts: RaceParts,
    client: ModelClient,
    /// Interrupted race to discard when this one starts, and not before.
    discarded: Option<UnfinishedRace>,
    scope: AnswerScope,
    /// Arguments of the command that resumes the race if it is interrupted; `None` without a session.
    resume: Option<Vec<String>>,
}

/// What the branches answer.
enum RaceInput {
    Prompt(String),
    /// The interrupted race, which is resumed.
    Unfinished(UnfinishedRace),
}

impl RaceInput {
    /// Returns the text of the prompt.
    fn prompt(&self) -> String {
        match self {
            RaceInput::Prompt(prompt) => prompt.clone(),
            RaceInput::Unfinished(race) => {
                let messages = race.prompts.iter().filter_map(AgentMessage::as_llm);
                messages.map(Message::text).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// Prepares a race; `None` if the command only discards an interrupted one.
fn prepare(
    mut arguments: RaceArguments,
    printer: &Printer,
) -> Result<Option<PreparedRace>, CliError> {
    let prompt = read_prompt(arguments.prompt.take())?;
    let path = arguments.session.clone();
    let (mut session, mut recorded) = match &path {
        // An empty file counts as a missing one.
        Some(path) if path.exists() && !is_empty(path) => {
            let (file, recorded) = SessionFile::open(path).map_err(session_error)?;
            warn_if_open_to_others(path, printer);
            (Some(file), Some(recorded))
        }
        _ => (None, None),
    };
    let discarded = match arguments.abandon {
        true => Some(unfinished_race(recorded.as_mut())?),
        false => None,
    };
    if let (Some(race), None, Some(session), Some(recorded)) =
        (&discarded, &prompt, &mut session, &recorded)
    {
        session.record_discard(&recorded.context.session, race).map_err(session_error)?;
        return Ok(None);
    }
    let interrupted = interrupted_race(recorded.as_mut(), prompt.as_deref())?;
    let setup = match &interrupted {
        Some(unfinished) => {
            rules::check_unchanged(&arguments)?;
            RaceSetup::recorded(&unfinished.settings, arguments.suite.as_deref())?
        }
        None => {
            let earlier = recorded.as_ref().and_then(|recorded| match arguments.again {
                true => Some((recorded.last_contested.as_ref()?, None)),
                false => {
                    recorded.last.as_ref().map(|race| (&race.settings, Some(race.selected_index)))
                }
            });
            if recorded.is_some() && prompt.is_none() {
                return Err(UsageError::new("the session has no interrupted race")
                    .hint("pass a prompt to continue the conversation")
                    .into());
            }
            RaceSetup::new(&arguments, earlier)?
        }
    };
    let input = match (interrupted, prompt) {
        (Some(unfinished), _) => RaceInput::Unfinished(unfinished),
        (None, Some(prompt)) => RaceInput::Prompt(prompt),
        (None, None) => {
            return Err(UsageError::new("no prompt given")
                .hint("`bakeoff race \"…\"`; `-` reads it from standard input")
                .into());
        }
    };
    let resolver = ModelResolver::new(setup.suite.as_deref())?;
    let participants = setup.resolve(&resolver)?;
    if arguments.max_cost.is_some() {
        participants.all().try_for_each(|model| require_price(model.name(), model))?;
    }
    let options = ClientOptions {
        seed: setup.seed,
        history: settings::history_file(),
        max_cost: arguments.max_cost,
        redactor: participants.redactor(),
        ..ClientOptions::default()
    };
    let environment = resolver.defined.env_file.variables().collect();
    let client = ModelClient::new(participants.all(), resolver.defined, options, printer);
    printer.redact(client.redactor.clone());
    let parts = setup.parts(&client.client, participants, &input.prompt(), environment)?;
    let context = context(recorded, arguments.system.take())?;
    let scope = arguments.show;
    let resume = resume_arguments(&arguments);
    Ok(Some(PreparedRace {
        input,
        session,
        path,
        context,
        setup,
        parts,
        client,
        discarded,
        scope,
        resume,
    }))
}

/// Returns the arguments that resume the race if it is interrupted. The session has all settings but the budget.
fn resume_arguments(arguments: &RaceArguments) -> Option<Vec<String>> {
    let session = arguments.session.as_ref()?;
    let mut words = vec!["--session".to_owned(), session.display().to_string()];
    if let Some(cost) = arguments.max_cost {
        words.extend(["--max-cost".to_owned(), cost.as_dollars().to_string()]);
    }
    Some(words)
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0)
}

fn read_prompt(prompt: Option<String>) -> Result<Option<String>, UsageError> {
    let prompt = match prompt.as_deref() {
        Some("-") => {
            let mut text = String::new();
            let mut input = std::io::stdin().take(MAX_PROMPT_BYTES + 1);
            input.read_to_string(&mut text).map_err(|error| {
                UsageError::new(format!("cannot read the prompt: {error}"))
                    .hint("the prompt must be UTF-8 text")
            })?;
            if text.len() as u64 > MAX_PROMPT_BYTES {
                return Err(UsageError::new("prompt exceeds 64 MiB"));
            }
            Some(text)
        }
        _ => prompt,
    };
    match prompt {
        Some(prompt) if prompt.trim().is_empty() => Err(UsageError::new("the prompt is empty")),
        prompt => Ok(prompt),
    }
}

/// Returns the interrupted race of a session, which has to be finished first.
fn interrupted_race(
    recorded: Option<&mut RecordedSession>,
    prompt: Option<&str>,
) -> Result<Option<UnfinishedRace>, UsageError> {
    let Some(unfinished) = recorded.and_then(|recorded| recorded.unfinished.take()) else {
        return Ok(None);
    };
    if prompt.is_some() {
        return Err(UsageError::new("the last race of the session was interrupted")
            .hint("omit the prompt to resume it; `--abandon` discards it"));
    }
    Ok(Some(unfinished))
}

fn unfinished_race(recorded: Option<&mut RecordedSession>) -> Result<UnfinishedRace, UsageError> {
    let race = recorded.and_then(|recorded| recorded.unfinished.take());
    race.ok_or_else(|| UsageError::new("no interrupted race to discard"))
}

fn context(
    recorded: Option<RecordedSession>,
    system: Option<String>,
) -> Result<AgentContext, UsageError> {
    match (recorded, system) {
        (None, system) => {
            Ok(AgentContext::default().with_system_prompt(system.unwrap_or_default()))
        }
        (Some(recorded), None) => Ok(recorded.context),
        (Some(recorded), Some(system)) if recorded.context.system_prompt == system => {
            Ok(recorded.context)
        }
        (Some(_), Some(_)) => Err(UsageError::new("the session has a different system prompt")
            .hint("omit `--system`, or start a new session")),
    }
}

fn session_error(error: SessionError) -> CliError {
    let message = chain(&error);
    match error {
        SessionError::NotASession { .. } => {
            UsageError::new(message).hint("use another file").into()
        }
        SessionError::Journal(bakeoff_journal::Error::Io { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            UsageError::new(message).hint("create the folder first").into()
        }
        SessionError::Journal(bakeoff_journal::Error::Locked { .. }) => {
            CliError::internal(message).hint("wait until the other process has finished")
        }
        SessionError::Journal(_) => {
            CliError::internal(message).hint("check the file and its folder, or use another file")
        }
        _ => UsageError::new(message).into(),
    }
}

impl PreparedRace {
    async fn run(mut self, shutdown: &Shutdown, printer: &Printer) -> Result<Outcome, CliError> {
        let stop = shutdown.cancel_token();
        let tools = self.start_tools(&stop).await?;
        let result = self.run_with_tools(shutdown, printer).await;
        close_all(tools).await;
        result
    }

    /// Starts the tools of all branches and adds them to the configs.
    async fn start_tools(
        &mut self,
        stop: &CancellationToken,
    ) -> Result<Vec<BranchTools>, CliError> {
        let mut started = Vec::new();
        for (index, settings) in self.parts.tools.iter().enumerate() {
            let Some(settings) = settings else { continue };
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => Err(CliError::Aborted),
                result = BranchTools::start(settings) => result.map_err(|message| {
                    let name = self.parts.names.get(index).map_or("", String::as_str);
                    CliError::from(UsageError::new(format!("{name}: {message}")))
                }),
            };
            match result {
                Ok(branch) => {
                    if let Some(config) = self.parts.configs.get_mut(index) {
                        config.tools = Some(branch.tools.clone());
                    }
                    started.push(branch);
                }
                Err(error) => {
                    close_all(started).await;
                    return Err(error);
                }
            }
        }
        Ok(started)
    }

    async fn run_with_tools(
        self,
        shutdown: &Shutdown,
        printer: &Printer,
    ) -> Result<Outcome, CliError> {
        let PreparedRace {
            input,
            session,
            path,
            context,
            setup,
            parts,
            client,
            discarded,
            scope,
            resume,
        } = self;
        let (base, configs) = (context.clone(), parts.configs.clone());
        let strategy = Arc::clone(&parts.strategy);
        let race = match input {
            RaceInput::Unfinished(unfinished) => Race::resume(unfinished, base, configs, strategy),
            RaceInput::Prompt(prompt) => {
                Race::new(vec![AgentMessage::user(prompt)], base, configs, strategy)
            }
        };
        let race = race.map_err(|error| UsageError::new(chain(&error)))?;
        let redactor = client.redactor.clone();
        let mut session = match (session, path) {
            (Some(mut session), _) => {
                session.set_redactor(redactor);
                Some(session)
            }
            (None, Some(path)) => {
                Some(SessionFile::create(&path, &context, redactor).map_err(session_error)?)
            }
            (None, None) => None,
        };
        let mut write_error = None;
        if let Some(session) = &mut session {
            let cleared =
                discarded.map_or(Ok(()), |old| session.record_discard(&context.session, &old));
            let started = cleared.and_then(|()| session.record_start(&race, setup.to_json()));
            started.map_err(|error| CliError::internal(chain(&error)))?;
        }
        let renderer = RaceRenderer::new(&parts, race.loop_ids());
        let (tx, events) = event_channel(EVENT_CAPACITY);
        let mut on_end = |outcome: &bakeoff_race::ParallelLoopOutcome| {
            if let Some(session) = &mut session
                && let Err(error) = session.record_branch(outcome)
            {
                write_error.get_or_insert(error);
            }
        };
        // Texts before a tool call are no part of the answer.
        let streams =
            matches!(parts.tools[..], [None]) && scope == AnswerScope::Winner && !race.is_resumed();
        let display = RaceDisplay::new(&renderer, printer, streams);
        shutdown.print_with(display.printer());
        let stop = shutdown.cancel_token();
        let (result, ()) = tokio::join!(race.run(tx, stop, &mut on_end), display.listen(events));
        let written = match (session, write_error) {
            (None, _) => Ok(()),
            (Some(_), Some(error)) => Err(error),
            (Some(mut session), None) => {
                session.record_end(&context.session, &result).and_then(|()| session.finish())
            }
        };
        let code = exit_code(&result);
        let scope = if streams { None } else { Some(scope) };
        print_result(&renderer, &result, scope, resume.as_deref(), printer);
        let outcome = Outcome::new(code).with_fields(renderer.to_json(&result));
        written.map_err(|error| CliError::Internal {
            message: chain(&error),
            hint: Some("the result is not in the session".to_owned()),
            result: outcome.result.clone(),
        })?;
        client.save_history();
        Ok(outcome)
    }
}

async fn close_all(tools: Vec<BranchTools>) {
    let closing: JoinSet<()> = tools.into_iter().map(BranchTools::close).collect();
    closing.join_all().await;
}

fn exit_code(result: &Result<ParallelLoopResult, RaceError>) -> ExitCode {
    match result {
        // The answer of a fallback is better than none, but no judge has chosen it.
        Ok(result) if !result.verdict.kind.is_conclusive() => ExitCode::Inconclusive,
        Ok(_) => ExitCode::Passed,
        Err(RaceError::NoneAcceptable { verdict, .. })
            if verdict.kind == VerdictKind::Inconclusive =>
        {
            ExitCode::Inconclusive
        }
        Err(RaceError::NoneAcceptable { .. }) => ExitCode::Failed,
        Err(RaceError::AllFailed { .. }) => ExitCode::Inconclusive,
        Err(RaceError::Cancelled { .. }) => ExitCode::Interrupted,
        Err(_) => ExitCode::Internal,
    }
}

/// Prints the result, with the answers in this scope; none if the answer was printed as it arrived.
fn print_result(
    renderer: &RaceRenderer,
    result: &Result<ParallelLoopResult, RaceError>,
    scope: Option<AnswerScope>,
    resume: Option<&[String]>,
    printer: &Printer,
) {
    match result {
        Ok(result) => {
            renderer.verdict(result).iter().for_each(|line| printer.message(line));
            let answers = scope.map(|scope| renderer.answers(result, scope)).unwrap_or_default();
            answers.iter().for_each(|line| printer.answer(line));
        }
        Err(RaceError::Cancelled { .. }) => {
            printer.message("interrupted");
            if let Some(resume) = resume {
                hint_at_race(resume, printer);
            }
        }
        Err(error) => {
            let hint = match error {
                RaceError::NoneAcceptable { .. } if exit_code(result) == ExitCode::Inconclusive => {
                    Some("check the verifier; `--show all` prints all answers")
                }
                RaceError::NoneAcceptable { .. } if scope != Some(AnswerScope::All) => {
                    Some("`--show all` prints all answers")
                }
                _ => None,
            };
            printer.error(renderer.failure(error), hint);
            if scope == Some(AnswerScope::All) {
                let answers = renderer.all_answers(error.outcomes(), None);
                answers.iter().for_each(|line| printer.answer(line));
            }
        }
    }
}

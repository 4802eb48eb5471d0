//! `bakeoff race`: which of several answers is best, now?

mod live;
mod setup;
mod shown;
mod strategy;

use crate::arguments::{RaceArguments, Show};
use crate::models::{self, Refused};
use crate::printer::{Printer, chain};
use crate::settings;
use bakeoff_agent::{AgentContext, AgentMessage, event_channel};
use bakeoff_core::{ExitCode, Redactor};
use bakeoff_llm::{Client, ClientConfig, LimitHistory, Provider};
use bakeoff_race::{
    ParallelLoopResult, Race, RaceError, RecordedSession, SessionError, SessionFile,
    UnfinishedRace, VerdictKind,
};
use live::Live;
use setup::{Ready, Setup};
use shown::Shown;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// Pieces of answers that may wait to be shown.
const EVENTS_WAITING: usize = 1024;

pub(crate) fn run(arguments: RaceArguments) -> ExitCode {
    let printer = Printer::new(arguments.quiet);
    settings::raise_file_limit();
    match prepare(arguments, &printer) {
        Ok(prepared) => match super::block_on(&printer, prepared.race(&printer)) {
            Ok(code) => printer.settle(code),
            Err(code) => code,
        },
        Err(Stop::Refused(refused)) => refused.show(&printer),
        Err(Stop::Told(code)) => code,
    }
}

/// Why there is no race.
enum Stop {
    Refused(Refused),
    /// It has been said already.
    Told(ExitCode),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        Stop::Refused(refused)
    }
}

/// Everything that a race needs.
struct Prepared {
    race: Race,
    session: Option<SessionFile>,
    context: AgentContext,
    setup: Setup,
    ready: Ready,
    /// Given up when this one begins, and not before.
    abandoned: Option<UnfinishedRace>,
    show: Show,
    json: bool,
    redactor: Redactor,
}

fn prepare(mut arguments: RaceArguments, printer: &Printer) -> Result<Prepared, Stop> {
    let prompt = read_prompt(arguments.prompt.take())?;
    let path = arguments.session.clone();
    let (mut session, recorded) = match &path {
        // An empty file is as good as none.
        Some(path) if path.exists() && !is_empty(path) => {
            let (file, recorded) = SessionFile::open(path).map_err(|e| refuse(&e))?;
            (Some(file), Some(recorded))
        }
        _ => (None, None),
    };
    let mut recorded = recorded;
    let abandoned = match arguments.abandon {
        true => Some(unfinished(recorded.as_mut())?),
        false => None,
    };
    if let (Some(race), None, Some(session), Some(recorded)) =
        (&abandoned, &prompt, &mut session, &recorded)
    {
        session.record_discard(&recorded.context.session, race).map_err(|error| refuse(&error))?;
        printer.talk("the race that was interrupted is given up");
        return Err(Stop::Told(ExitCode::Passed));
    }
    let interrupted = interrupted(recorded.as_mut(), prompt.as_deref())?;
    let setup = match &interrupted {
        Some(unfinished) => {
            setup::refuse_changes(&arguments)?;
            Setup::recorded(&unfinished.settings, arguments.suite.as_deref())?
        }
        None => {
            let earlier = recorded.as_ref().and_then(|recorded| match arguments.again {
                true => Some((recorded.last_contested.as_ref()?, None)),
                false => {
                    recorded.last.as_ref().map(|race| (&race.settings, Some(race.selected_index)))
                }
            });
            if recorded.is_some() && prompt.is_none() {
                return Err(Refused::new(
                    "no race of the session was interrupted",
                    "give a prompt to go on with the conversation",
                )
                .into());
            }
            Setup::new(&arguments, earlier)?
        }
    };
    let known = models::known(setup.suite.as_deref(), printer).map_err(Stop::Told)?;
    let participants = setup.resolve(&known)?;
    let mut redactor = Redactor::default();
    participants.all().for_each(|model| model.add_secrets(&mut redactor));
    // Tools and servers may repeat what they see.
    Provider::add_secrets(&settings::variable, &mut redactor);
    let simulator = bakeoff_sim::Config {
        seed: setup.seed,
        models: known.simulated,
        ..bakeoff_sim::Config::default()
    };
    let limit_history = settings::memory_file()
        .map_or_else(LimitHistory::default, |path| LimitHistory::read(&path, SystemTime::now()));
    let config = ClientConfig::default()
        .simulator(simulator)
        .simulated_models(models::simulated())
        .redactor(redactor.clone());
    let client = Arc::new(Client::new(config.limit_history(limit_history)));
    let ready = setup.ready(&client, participants)?;
    let context = context(recorded, arguments.system.take())?;
    let race = match (interrupted, prompt) {
        (Some(unfinished), _) => {
            let strategy = Arc::clone(&ready.strategy);
            Race::resume(unfinished, context.clone(), ready.configs.clone(), strategy)
        }
        (None, Some(prompt)) => {
            let prompts = vec![AgentMessage::user(prompt)];
            let strategy = Arc::clone(&ready.strategy);
            Race::new(prompts, context.clone(), ready.configs.clone(), strategy)
        }
        (None, None) => {
            let hint = "`bakeoff race \"…\"`; `-` reads it from standard input";
            return Err(Refused::new("there is no prompt", hint).into());
        }
    };
    let race = race.map_err(|error| Refused { message: chain(&error), hint: None })?;
    match (&mut session, &path) {
        (Some(session), _) => session.set_redactor(redactor.clone()),
        (None, Some(path)) => session = Some(create(path, &context, redactor.clone())?),
        (None, None) => {}
    }
    let (show, json) = (arguments.show, arguments.json);
    Ok(Prepared { race, session, context, setup, ready, abandoned, show, json, redactor })
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0)
}

/// Longest prompt: no model reads more, and what never ends must not fill the memory.
pub(super) const MOST_TEXT: u64 = 64 * 1024 * 1024;

fn read_prompt(prompt: Option<String>) -> Result<Option<String>, Refused> {
    let prompt = match prompt.as_deref() {
        Some("-") => {
            let mut text = String::new();
            let mut input = std::io::stdin().take(MOST_TEXT + 1);
            input.read_to_string(&mut text).map_err(|error| {
                Refused::new(format!("cannot read the prompt: {error}"), "it must be UTF-8 text")
            })?;
            if text.len() as u64 > MOST_TEXT {
                return Err(Refused::new(
                    "the prompt is longer than 64 MiB",
                    "no model reads that",
                ));
            }
            Some(text)
        }
        _ => prompt,
    };
    match prompt {
        Some(prompt) if prompt.trim().is_empty() => {
            Err(Refused::new("the prompt is empty", "ask something"))
        }
        prompt => Ok(prompt),
    }
}

/// The race of a session that has to be finished first, if there is one.
fn interrupted(
    recorded: Option<&mut RecordedSession>,
    prompt: Option<&str>,
) -> Result<Option<UnfinishedRace>, Refused> {
    let Some(unfinished) = recorded.and_then(|recorded| recorded.unfinished.take()) else {
        return Ok(None);
    };
    if prompt.is_some() {
        return Err(Refused::new(
            "the last race of the session was interrupted",
            "without a prompt it goes on; `--abandon` gives it up",
        ));
    }
    Ok(Some(unfinished))
}

fn unfinished(recorded: Option<&mut RecordedSession>) -> Result<UnfinishedRace, Refused> {
    let race = recorded.and_then(|recorded| recorded.unfinished.take());
    race.ok_or_else(|| Refused { message: "there is no race to give up".to_owned(), hint: None })
}

fn context(
    recorded: Option<RecordedSession>,
    system: Option<String>,
) -> Result<AgentContext, Refused> {
    match (recorded, system) {
        (None, system) => Ok(AgentContext {
            system_prompt: system.unwrap_or_default(),
            ..AgentContext::default()
        }),
        (Some(recorded), None) => Ok(recorded.context),
        (Some(recorded), Some(system)) if recorded.context.system_prompt == system => {
            Ok(recorded.context)
        }
        (Some(_), Some(_)) => Err(Refused::new(
            "the session has other instructions",
            "leave out `--system`, or begin a new session",
        )),
    }
}

fn create(path: &Path, context: &AgentContext, redactor: Redactor) -> Result<SessionFile, Refused> {
    SessionFile::create(path, context, redactor).map_err(|error| refuse(&error))
}

fn refuse(error: &SessionError) -> Refused {
    let hint = match error {
        SessionError::NotASession { .. } => Some("name another file".to_owned()),
        _ => None,
    };
    Refused { message: chain(error), hint }
}

impl Prepared {
    async fn race(self, printer: &Printer) -> ExitCode {
        let Prepared { race, mut session, context, setup, ready, abandoned, show, json, redactor } =
            self;
        let mut trouble = None;
        if let Some(session) = &mut session {
            let given_up =
                abandoned.map_or(Ok(()), |old| session.record_discard(&context.session, &old));
            let started = given_up.and_then(|()| session.record_start(&race, setup.to_json()));
            if let Err(error) = started {
                printer.error(chain(&error), None);
                return ExitCode::Internal;
            }
        }
        let shown = Shown::new(&ready, race.loop_ids(), redactor);
        let has_session = session.is_some();
        let cancel = CancellationToken::new();
        let (tx, events) = event_channel(EVENTS_WAITING);
        let mut on_end = |outcome: &bakeoff_race::ParallelLoopOutcome| {
            if let Some(session) = &mut session
                && let Err(error) = session.record_branch(outcome)
            {
                trouble.get_or_insert(error);
            }
        };
        let listening = Live::new(&shown, printer, json).listen(events);
        let listening_for_signals = tokio::spawn({
            let cancel = cancel.clone();
            async move {
                told_to_stop().await;
                cancel.cancel();
                told_to_stop().await;
                // Whoever asks twice does not want to wait; branches that ended are on disk.
                std::process::exit(i32::from(ExitCode::Interrupted.code()));
            }
        });
        let (result, ()) = tokio::join!(race.run(tx, cancel, &mut on_end), listening);
        listening_for_signals.abort();
        if let Some(mut session) = session {
            let written = match trouble {
                Some(error) => Err(error),
                None => {
                    session.record_end(&context.session, &result).and_then(|()| session.finish())
                }
            };
            if let Err(error) = written {
                printer.error(chain(&error), Some("the answer below is not in the session"));
                conclude(&shown, &result, Wanted { show, json, has_session }, printer);
                return ExitCode::Internal;
            }
        }
        remember(&ready);
        conclude(&shown, &result, Wanted { show, json, has_session }, printer)
    }
}

/// Ctrl-C, or what ends processes politely.
async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}

/// Keeps what was learned about limits; without it the next race is as good as this one.
fn remember(ready: &Ready) {
    if let Some(path) = settings::memory_file() {
        let _ = LimitHistory::save(&path, &ready.client.learned(), SystemTime::now());
    }
}

/// What is shown at the end.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    show: Show,
    json: bool,
    has_session: bool,
}

/// Shows how it ended; the exit code.
fn conclude(
    shown: &Shown,
    result: &Result<ParallelLoopResult, RaceError>,
    wanted: Wanted,
    printer: &Printer,
) -> ExitCode {
    let code = match result {
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
    };
    if wanted.json {
        shown.print_json(&shown.json(result, code), printer);
        return code;
    }
    match result {
        Ok(result) => {
            shown.verdict(result).iter().for_each(|line| printer.talk(line));
            shown.answers(result, wanted.show).iter().for_each(|line| printer.answer(line));
        }
        Err(RaceError::Cancelled { .. }) if wanted.has_session => {
            printer.talk("interrupted; the session goes on with it when there is no prompt");
        }
        Err(RaceError::Cancelled { .. }) => printer.talk("interrupted"),
        Err(error) => {
            let hint = match error {
                RaceError::NoneAcceptable { .. } if code == ExitCode::Inconclusive => {
                    Some("see to the verifier; `--show all` shows all answers")
                }
                RaceError::NoneAcceptable { .. } if wanted.show != Show::All => {
                    Some("`--show all` shows all answers")
                }
                _ => None,
            };
            printer.error(shown.failure(error), hint);
            if wanted.show == Show::All {
                shown
                    .all_answers(error.outcomes(), None)
                    .iter()
                    .for_each(|line| printer.answer(line));
            }
        }
    }
    code
}

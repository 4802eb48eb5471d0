//! Signal handling and the asynchronous runtime of commands.
//!
//! All commands share one contract. The first SIGINT, SIGTERM or SIGHUP starts nothing new, lets work in
//! flight finish and writes the results; the process then exits with 130. The second signal aborts. A race
//! cancels its branches at the first signal: they can be resumed, and the judge would not be asked any more.

use crate::error::CliError;
use crate::printer::Printer;
use crate::progress::ProgressPrinter;
use bakeoff_eval::Stopper;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Shutdown state of the running command.
#[derive(Clone, Default)]
pub(crate) struct Shutdown {
    stop: CancellationToken,
    abort: CancellationToken,
    /// Set when the command cancels work in flight at the first signal.
    cancels_at_once: Arc<AtomicBool>,
    /// Set when the command handles an abort itself.
    handles_abort: Arc<AtomicBool>,
    printer: Arc<Mutex<Option<ProgressPrinter>>>,
}

impl Shutdown {
    /// Returns a token that the first signal cancels.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns a token that the first signal cancels, for a command that cancels work in flight with it.
    pub(crate) fn cancel_token(&self) -> CancellationToken {
        self.cancels_at_once.store(true, Ordering::Relaxed);
        self.stop.clone()
    }

    /// Prints reactions to signals through this printer, so that they do not break a progress bar.
    pub(crate) fn print_with(&self, printer: ProgressPrinter) {
        *self.printer.lock().unwrap_or_else(PoisonError::into_inner) = Some(printer);
    }

    /// Returns a stopper of the trial engine, which drains on the first signal and ends trials on the second.
    pub(crate) fn stopper(&self) -> Stopper {
        let stopper = Stopper::default();
        self.handles_abort.store(true, Ordering::Relaxed);
        // Ends with the runtime.
        tokio::spawn({
            let (stopper, shutdown) = (stopper.clone(), self.clone());
            async move {
                shutdown.stop.cancelled().await;
                stopper.stop();
                shutdown.abort.cancelled().await;
                stopper.abort();
            }
        });
        stopper
    }

    /// Waits until the command has to be dropped.
    async fn aborted(&self) {
        self.abort.cancelled().await;
        if self.handles_abort.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    async fn handle_signals(self, is_quiet: bool) {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // Without handlers, a signal kills the process as usual.
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
            return;
        };
        for token in [&self.stop, &self.abort] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            let is_first = !self.stop.is_cancelled();
            let message = match is_first && !self.cancels_at_once.load(Ordering::Relaxed) {
                true => "stopping: waiting for work in flight; press Ctrl-C again to abort",
                false => "aborting work in flight",
            };
            if !is_quiet {
                match &*self.printer.lock().unwrap_or_else(PoisonError::into_inner) {
                    Some(printer) => printer.print(message),
                    None => ProgressPrinter::default().print(message),
                }
            }
            token.cancel();
        }
    }
}

/// Runs the asynchronous part of a command, with signal handling.
pub(crate) fn block_on<T, E: Into<CliError>>(
    printer: &Printer,
    work: impl AsyncFnOnce(Shutdown) -> Result<T, E>,
) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::internal(format!("cannot start the runtime: {error}")))?;
    let shutdown = Shutdown::default();
    let result = runtime.block_on(async {
        let handler = tokio::spawn(shutdown.clone().handle_signals(printer.is_quiet()));
        let result = tokio::select! {
            result = work(shutdown.clone()) => result.map_err(Into::into),
            () = shutdown.aborted() => Err(CliError::Aborted),
        };
        handler.abort();
        result
    });
    if matches!(result, Err(CliError::Aborted)) {
        // Blocking calls must not delay an abort.
        runtime.shutdown_background();
    }
    result
}

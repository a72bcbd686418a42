//! The files of a training run: the log, the best model, and the checkpoint from which the run resumes.

use std::fs;
use std::path::Path;

use wengert_macros::precompiled;
use wengert_tensor::{Float, Generator};

use crate::checkpoint::{Checkpoint, Saved, save};
use crate::error::Place;
use crate::file::exists;
use crate::fit::settings::{Settings, last_measure};
use crate::history::History;
use crate::module::Module;
use crate::schedule::Plateau;
use crate::{Error, Result};

#[precompiled]
impl<T: Float> Settings<'_, T> {
    /// Creates the folder of the training, if the training has one. Returns the checkpoint from which the training
    /// resumes, or `None` if the training starts from the beginning.
    pub(super) fn last_checkpoint(&self) -> Result<Option<Saved>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        let last = folder.join(LAST);
        // For a link to a missing file, `exists` returns true, and `open` returns an error. A test that follows the link would return false, and a
        // new run would overwrite the files of the earlier run.
        if self.resume && exists(&last)? { Checkpoint::open(last).map(Some) } else { Ok(None) }
    }

    /// Restores everything except the optimiser from a checkpoint. Reads the history of the completed epochs from the log, and returns it
    /// with the metrics in the order of `names`.
    pub(super) fn restore(
        &mut self,
        saved: &Saved,
        names: &[&str],
        model: &mut dyn Module<T>,
        generator: &mut Generator,
    ) -> Result<History> {
        let log = self.folder.as_deref().unwrap_or(Path::new("")).join(LOG);
        let history = read_log(&log, saved.integer("epoch")?)?.with_metric_order(names);
        saved.load_model(model)?;
        if let Some((_, average)) = &mut self.average {
            saved.load_states("average", &mut **average, model)?;
        }
        if let Some((_, plateau)) = &mut self.plateau {
            let (lr, best) = (saved.number("plateau.lr")?, saved.number("plateau.best")?);
            let (waited, cooling) = (saved.integer("plateau.waited")?, saved.integer("plateau.cooling")?);
            plateau.set_state(Plateau { lr, best, waited, cooling });
        }
        *generator = saved.generator()?;
        self.stopping.set_state((saved.number("best")?, saved.integer("waited")?));
        Ok(history)
    }

    /// Passes the last epoch's measure to early stopping. If the training has a folder, also writes the log, and the
    /// model if the measure improved. The log is written before the checkpoint. So after an interruption, the log has at least as many epochs
    /// as the checkpoint, unless the checkpoint is from an earlier training run.
    pub(super) fn record_epoch(&mut self, history: &History, model: &dyn Module<T>) -> Result<()> {
        let improved = self.stopping.update(last_measure(history, "early stopping", &self.monitor)?);
        let Some(folder) = &self.folder else { return Ok(()) };
        history.save(folder.join(LOG))?;
        if improved { save(model, folder.join(BEST)) } else { Ok(()) }
    }

    /// Returns a checkpoint with the state of the training except the optimiser. The checkpoint has the number of completed epochs, but not their
    /// history, which is in the log.
    pub(super) fn checkpoint(&self, history: &History, model: &dyn Module<T>, generator: &Generator) -> Checkpoint {
        let (best, waited) = self.stopping.state();
        let mut checkpoint = Checkpoint::new().model(model).generator(generator);
        if let Some((_, average)) = &self.average {
            checkpoint = checkpoint.states("average", &**average, model);
        }
        if let Some((_, plateau)) = &self.plateau {
            let Plateau { lr, best, waited, cooling } = plateau.state();
            checkpoint = checkpoint.number("plateau.lr", lr).number("plateau.best", best);
            checkpoint = checkpoint.integer("plateau.waited", waited).integer("plateau.cooling", cooling);
        }
        let checkpoint = checkpoint.integer("epoch", history.epochs().len() as u64);
        checkpoint.number("best", best).integer("waited", waited)
    }
}

/// Reads the first `epochs` epochs of a log. The log may have one more epoch, if the training ended before it wrote the
/// checkpoint. A log with fewer epochs is an error.
fn read_log(path: &Path, epochs: u64) -> Result<History> {
    let mut history = History::read(path)?;
    let found = history.epochs().len() as u64;
    if found < epochs {
        let problem = format!(
            "the log has {found} epochs, but '{LAST}' was written after epoch {epochs}; restore the log, or remove \
             '{LAST}' to train from the beginning"
        );
        return Err(Error::Malformed { path: path.to_owned(), place: Place::Line(found + 1), problem });
    }
    history.truncate(epochs as usize);
    Ok(history)
}

/// The name of the file with the log.
pub(super) const LOG: &str = "log.jsonl";

/// The name of the file with the best model.
pub(super) const BEST: &str = "best.safetensors";

/// The name of the file with the checkpoint of the last epoch.
pub(super) const LAST: &str = "last.safetensors";

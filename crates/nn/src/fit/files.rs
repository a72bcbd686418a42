//! The files of a training: the log, the best model, and the checkpoint from which a training resumes.

use std::fs;
use std::path::Path;

use wengert_tensor::{Float, Generator};

use crate::checkpoint::{Checkpoint, save};
use crate::error::Place;
use crate::file::exists;
use crate::fit::fit::Fit;
use crate::history::History;
use crate::module::Module;
use crate::optim::Optimizer;
use crate::schedule::Plateau;
use crate::{Error, Result};

impl<T: Float, X: Send + 'static, Y: Send + 'static> Fit<'_, T, X, Y> {
    /// Restores the state of an interrupted training, and returns the history of the completed epochs.
    pub(super) fn restore<M: Module<T>, O: Optimizer<T>>(
        &mut self,
        model: &mut M,
        optimizer: &mut O,
        generator: &mut Generator,
    ) -> Result<History> {
        let Some(folder) = &self.folder else { return Ok(History::default()) };
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        let last = folder.join(LAST);
        // A link to a missing file exists. It is an error, because a new training would overwrite the old one.
        if !self.resume || !exists(&last)? {
            return Ok(History::default());
        }
        let saved = Checkpoint::open(last)?;
        let names: Vec<&str> = self.metrics.iter().map(|(name, _)| &name[..]).collect();
        let history = read_log(&folder.join(LOG), saved.integer("epoch")?)?.reordered(&names);
        saved.load_model(model)?;
        saved.load_optimizer("optimizer", optimizer, model)?;
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

    /// Returns a measure of the last epoch.
    fn measure(history: &History, setting: &str, name: &str) -> Result<f64> {
        let scores = history.last().map(|last| last.validation.as_ref().unwrap_or(&last.train));
        scores
            .and_then(|scores| scores.get(name))
            .ok_or_else(|| Error::Dataset(format!("{setting}: there is no measure '{name}'; add it by `metric`")))
    }

    /// Updates early stopping, and writes the log and the best model. The log is written before the checkpoint. So after an
    /// interruption, the log has at least as many epochs as the checkpoint.
    pub(super) fn save_best<M: Module<T>>(&mut self, history: &History, model: &M) -> Result<()> {
        let improved = self.stopping.update(Self::measure(history, "early stopping", &self.monitor)?);
        let Some(folder) = &self.folder else { return Ok(()) };
        history.save(folder.join(LOG))?;
        if improved { save(model, folder.join(BEST)) } else { Ok(()) }
    }

    /// Updates the plateau, and writes the checkpoint of an epoch.
    pub(super) fn finish_epoch<M: Module<T>, O: Optimizer<T>>(
        &mut self,
        history: &History,
        model: &M,
        optimizer: &mut O,
        generator: &Generator,
    ) -> Result<()> {
        if let Some((name, plateau)) = &mut self.plateau {
            optimizer.set_lr(plateau.step(Self::measure(history, "plateau", name)?));
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        let (best, waited) = self.stopping.state();
        let optimizer = &*optimizer;
        let mut checkpoint =
            Checkpoint::new().model(model).optimizer("optimizer", optimizer, model).generator(generator);
        if let Some((_, average)) = &self.average {
            checkpoint = checkpoint.states("average", &**average, model);
        }
        if let Some((_, plateau)) = &self.plateau {
            let Plateau { lr, best, waited, cooling } = plateau.state();
            checkpoint = checkpoint.number("plateau.lr", lr).number("plateau.best", best);
            checkpoint = checkpoint.integer("plateau.waited", waited).integer("plateau.cooling", cooling);
        }
        let checkpoint = checkpoint.integer("epoch", history.epochs().len() as u64);
        checkpoint.number("best", best).integer("waited", waited).save(folder.join(LAST))
    }
}

/// Reads the first `epochs` epochs of a log. The log may have one more, if the training ended before it wrote the
/// checkpoint.
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

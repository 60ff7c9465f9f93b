//! Runs every fuzz target with its committed inputs and with a fixed number of mutations of them. The
//! inputs are the same in every run. `cargo xtask soak` searches for other inputs.
//!
//! If an input ends the whole program, such as by an abort, the input is in the file `target/tmp/fuzz-input`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use tamis_fuzz::Target;

/// The number of mutations of a target.
const MUTATIONS: usize = 5_000;

/// The longest time that a target may take for one input. Most inputs take less than a millisecond.
const LIMIT: Duration = Duration::from_secs(20);

/// The memory that this program may use, in bytes.
#[cfg(target_os = "linux")]
const MEMORY_BYTES: u64 = 1 << 30;

/// The longest mutation. Longer mutations are cut.
const MAX_INPUT_BYTES: usize = 16 << 10;

#[test]
fn every_folder_of_seeds_belongs_to_a_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let folders = |parent: &Path| {
        let entries = std::fs::read_dir(parent).unwrap().map(Result::unwrap);
        let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let formats = folders(&seeds.join("format")).into_iter().map(|name| format!("format/{name}"));
    let names: BTreeSet<String> =
        folders(&seeds).into_iter().filter(|name| name != "format").chain(formats).collect();
    let targets = Target::all().iter().map(|target| target.name().to_owned()).collect();
    assert_eq!(names, targets);
}

#[test]
fn mutations_of_one_seed_are_the_same_in_every_run() {
    let [one, other] = [(); 2].map(|()| {
        let mut mutator = Mutator::new(vec![b"seed".to_vec()]);
        (0..100).map(|_| mutator.next()).collect::<Vec<_>>()
    });
    assert_eq!(one, other);
    assert!(one.iter().collect::<BTreeSet<_>>().len() > 50, "{one:?}");
}

/// One target after another: each may use all of the memory.
#[test]
fn no_input_makes_a_target_panic_or_exceed_its_limits() {
    limit_memory();
    Target::all().into_iter().for_each(check);
}

/// Runs a target with its seeds and with mutations of them.
fn check(target: Target) {
    let mut paths: Vec<_> =
        std::fs::read_dir(target.seeds()).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The order in a folder differs between file systems.
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    // Mutations of longer seeds would lose their ends.
    assert!(!seeds.is_empty() && seeds.iter().all(|seed| seed.len() <= MAX_INPUT_BYTES / 2));
    let name = target.name().to_owned();
    let input = Arc::new(Mutex::new(Vec::new()));
    let (sender, finished) = std::sync::mpsc::channel();
    let runs = std::thread::spawn({
        let input = Arc::clone(&input);
        move || {
            let mut mutator = Mutator::new(seeds.clone());
            let mutations = (0..MUTATIONS).map(|_| mutator.next());
            let mut file = InputFile::create();
            for bytes in seeds.into_iter().chain(mutations) {
                file.write(&bytes);
                input.lock().unwrap().clone_from(&bytes);
                target.run(&bytes);
                sender.send(()).unwrap();
            }
        }
    });
    let shown = || format!("{name} with the input b\"{}\"", input.lock().unwrap().escape_ascii());
    loop {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match finished.recv_timeout(LIMIT) {
            Ok(()) => {}
            Err(Timeout) => panic!("{LIMIT:?} were not enough for {}", shown()),
            Err(Disconnected) => break,
        }
    }
    assert!(runs.join().is_ok(), "a panic of {}", shown());
}

/// The file of the present input.
struct InputFile(File);

impl InputFile {
    fn create() -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-input");
        Self(File::create(path).unwrap())
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.rewind().unwrap();
        self.0.write_all(bytes).unwrap();
        self.0.set_len(bytes.len() as u64).unwrap();
    }
}

/// Limits the memory of this program. An allocation above the limit fails, which ends the program if the
/// target does not expect it.
fn limit_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let limit = Rlimit { current: Some(MEMORY_BYTES), maximum: Some(MEMORY_BYTES) };
        setrlimit(Resource::Data, limit).unwrap();
    }
}

/// An endless list of inputs: seeds with one to four random changes.
struct Mutator {
    seeds: Vec<Vec<u8>>,
    random: Rng,
}

impl Mutator {
    fn new(seeds: Vec<Vec<u8>>) -> Self {
        Self { seeds, random: Rng::with_seed(1) }
    }

    fn next(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..self.random.u8(1..=4) {
            self.change(&mut input);
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn seed(&mut self) -> &[u8] {
        &self.seeds[self.random.usize(..self.seeds.len())]
    }

    /// Makes one random change.
    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.usize(..=input.len());
        let end = self.random.usize(at..=input.len().min(at + 64));
        match self.random.u8(..8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.u8(..8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.random.u8(..);
                }
            }
            2 => self.write_number(&mut input[at..]),
            3 => drop(input.drain(at..end)),
            4 => {
                let copied = input[at..end].to_vec();
                input.splice(at..at, copied);
            }
            5 => {
                let mut bytes = [0; 8];
                self.random.fill(&mut bytes);
                let len = self.random.usize(1..=bytes.len());
                input.splice(at..at, bytes[..len].iter().copied());
            }
            6 => input.truncate(at),
            _ => {
                let from = self.random.usize(..=input.len());
                input.truncate(at);
                let end = self.seed().get(from..).unwrap_or_default().to_vec();
                input.extend(end);
            }
        }
    }

    /// Overwrites the first 1, 2, 4 or 8 bytes with an extreme number, in either byte order.
    fn write_number(&mut self, bytes: &mut [u8]) {
        const EXTREMES: [u64; 8] =
            [0, 1, 0x7f, 0x80, u32::MAX as u64, i32::MAX as u64, i64::MAX as u64, u64::MAX];
        let number = EXTREMES[self.random.usize(..EXTREMES.len())].to_le_bytes();
        let mut number = number[..1 << self.random.u8(..4)].to_vec();
        if self.random.bool() {
            number.reverse();
        }
        bytes.iter_mut().zip(number).for_each(|(byte, new)| *byte = new);
    }
}

//! Runs every fuzz target with its committed inputs and with a fixed number of mutations of them. The
//! inputs are the same in every run. `cargo xtask soak` searches for other inputs.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use tamis_fuzz::Target;

/// The number of mutations of a target.
const MUTATIONS: u64 = 5_000;

/// The longest time that a target may take for one input. Most inputs take less than a millisecond.
const LIMIT: Duration = Duration::from_secs(20);

/// The memory that this program may use, in bytes: a decoder that reserves what a header claims exceeds it.
#[cfg(target_os = "linux")]
const MEMORY_BYTES: u64 = 1 << 30;

/// The longest input. Longer mutations are cut.
const MAX_INPUT_BYTES: usize = 4096;

#[test]
fn every_folder_of_seeds_belongs_to_a_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        entries.map(name).collect::<Vec<_>>()
    };
    let formats = names(&seeds.join("format")).into_iter().map(|name| format!("format/{name}"));
    let folders: BTreeSet<String> =
        names(&seeds).into_iter().filter(|name| name != "format").chain(formats).collect();
    let targets = Target::all().iter().map(|target| target.name().to_owned()).collect();
    assert_eq!(folders, targets);
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

/// Defines a test for each target that is not a format, so that they run at the same time.
macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(&Target::named(stringify!($name)).unwrap());
            }
        )*

        #[test]
        fn every_target_has_a_test() {
            let tested = [$(stringify!($name)),*];
            for target in Target::all() {
                let is_format = target.name().starts_with("format/");
                assert!(is_format || tested.contains(&target.name()), "{}", target.name());
            }
        }
    };
}

targets!(commands guard_delta guard_snapshot integers key orc_file plan records resp tamis_file);

#[test]
fn formats() {
    for target in Target::all().iter().filter(|target| target.name().starts_with("format/")) {
        check(target);
    }
}

/// Runs a target with its seeds and with mutations of them.
fn check(target: &Target) {
    limit_memory();
    let begun = Instant::now();
    let mut paths: Vec<_> =
        std::fs::read_dir(target.seeds()).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The order in a folder differs between file systems.
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty());
    let mut mutator = Mutator::new(seeds.clone());
    let mutations = (0..MUTATIONS).map(|_| mutator.next());
    for input in seeds.into_iter().chain(mutations) {
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| target.run(&input)));
        let took = start.elapsed();
        assert!(
            outcome.is_ok() && took < LIMIT,
            "{} after {took:?} with the input b\"{}\"",
            target.name(),
            input.escape_ascii()
        );
    }
    eprintln!("{} {:?}", target.name(), begun.elapsed());
}

/// Makes an allocation above [`MEMORY_BYTES`] end this program. The report then names the test that ran.
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
    random: Random,
}

impl Mutator {
    fn new(seeds: Vec<Vec<u8>>) -> Self {
        Self { seeds, random: Random(1) }
    }

    fn next(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..=self.random.below(4) {
            self.change(&mut input);
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn seed(&mut self) -> &[u8] {
        &self.seeds[self.random.below(self.seeds.len())]
    }

    /// Makes one random change.
    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.below(input.len() + 1);
        let end = at + self.random.below((input.len() - at).min(64) + 1);
        match self.random.below(8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.random.next() as u8;
                }
            }
            2 => self.write_number(&mut input[at..]),
            3 => drop(input.drain(at..end)),
            4 => {
                let copied = input[at..end].to_vec();
                input.splice(at..at, copied);
            }
            5 => {
                let bytes: Vec<u8> =
                    (0..=self.random.below(8)).map(|_| self.random.next() as u8).collect();
                input.splice(at..at, bytes);
            }
            6 => input.truncate(at),
            _ => {
                let other = self.seed().to_vec();
                let from = self.random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }

    /// Overwrites the first 1, 2, 4 or 8 bytes with an extreme number, in either byte order.
    fn write_number(&mut self, bytes: &mut [u8]) {
        const EXTREMES: [u64; 8] =
            [0, 1, 0x7f, 0x80, u32::MAX as u64, i32::MAX as u64, i64::MAX as u64, u64::MAX];
        let number = EXTREMES[self.random.below(EXTREMES.len())];
        let len = 1 << self.random.below(4);
        let is_little = self.random.below(2) == 0;
        let number = if is_little { number.to_le_bytes() } else { number.to_be_bytes() };
        let number = if is_little { &number[..len] } else { &number[8 - len..] };
        for (byte, new) in bytes.iter_mut().zip(number) {
            *byte = *new;
        }
    }
}

/// Pseudo-random numbers (SplitMix64), the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `range`.
    fn below(&mut self, range: usize) -> usize {
        (self.next() % range as u64) as usize
    }
}

//! Inserts into the current slice of a window.

use crate::arch::places;
use crate::batch::answers::{answer_word, check_words};
use crate::bits::BitsMut;
use crate::filter::Insert;
use crate::filter::window::Window;
use crate::filter::window::clock::Clock;

impl<B: BitsMut> Window<B> {
    /// Clears the slices that are outside the window, so that the block of the current slice is
    /// ready for inserts.
    pub(super) fn turn(&mut self) {
        let slots = self.clock.slots();
        if self.clock.all_live() {
            return;
        }
        let cleared = self.clock.turn();
        let places = self.places;
        let words = &mut self.bits.words_mut()[Clock::WORDS..];
        if cleared.len() == slots {
            words.fill(0);
        } else {
            for place in words.chunks_exact_mut(places.len_words()) {
                for slot in cleared.clone() {
                    place[places.block(slot % slots)].fill(0);
                }
            }
        }
    }

    /// Stores hashes in order. A filter that refreshes items stores all hashes. A filter that does
    /// not refresh items stores only hashes that are not remembered. With a span of items, the
    /// caller passes at most as many hashes as fit in the current slice. The memory must be ready
    /// for the current slice.
    fn insert_now(&mut self, hashes: &[u64], answers: &mut [u64]) {
        let how = (self.clock.slot(), self.clock.refreshes);
        let words = &mut self.bits.words_mut()[Clock::WORDS..];
        let stored = places::insert_each(self.level, words, self.places, how, hashes, answers);
        self.clock.count(stored);
    }

    /// Stores one item. If the current slice is full, stores the item in the next slice. Returns
    /// true if the item was not remembered.
    fn insert_one(&mut self, hash: u64) -> bool {
        if self.clock.room() == 0 && (self.clock.refreshes || !self.contains_hash(hash)) {
            self.clock.next_slice();
            self.turn();
        }
        let mut answer = [0];
        if self.clock.room() > 0 {
            self.insert_now(&[hash], &mut answer);
        }
        answer[0] != 0
    }
}

impl<B: BitsMut> Insert for Window<B> {
    /// Stores an item at the current time. Returns true if the filter did not remember the item.
    fn insert_hash(&mut self, hash: u64) -> bool {
        let mut answer = [0];
        self.insert_hashes(&[hash], &mut answer);
        answer[0] != 0
    }

    fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        check_words(answers, hashes.len());
        self.turn();
        let (mut rest, mut words) = (hashes, answers);
        // If a run of items fits in the current slice, the run is stored without checking the clock
        // for each item.
        loop {
            let room = usize::try_from(self.clock.room()).unwrap_or(usize::MAX);
            if room >= rest.len() {
                return self.insert_now(rest, words);
            }
            let whole = room & !63;
            if whole > 0 {
                let (now, later) = rest.split_at(whole);
                let (now_words, later_words) = words.split_at_mut(whole / 64);
                self.insert_now(now, now_words);
                (rest, words) = (later, later_words);
                continue;
            }
            // If the current slice has space for fewer than 64 items, the items of one answer word
            // are stored one by one.
            let len = rest.len().min(64);
            words[0] = answer_word(&rest[..len], |&hash| self.insert_one(hash));
            (rest, words) = (&rest[len..], &mut words[1..]);
        }
    }
}

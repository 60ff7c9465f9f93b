// Asks a filter of Guava in a warm JVM: GuavaLookups FILE FIRST COUNT ROUNDS
//
// Reads the filter that Tamis wrote, asks for COUNT numbers from FIRST on, each times an odd constant, and prints how many it
// has, then nanoseconds a number for each round.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.FileInputStream;

public class GuavaLookups {
    public static void main(String[] args) throws Exception {
        BloomFilter<Long> filter;
        try (var file = new BufferedInputStream(new FileInputStream(args[0]))) {
            filter = BloomFilter.readFrom(file, Funnels.longFunnel());
        }
        long first = Long.parseLong(args[1]);
        int count = Integer.parseInt(args[2]);
        int rounds = Integer.parseInt(args[3]);
        long[] items = new long[count];
        for (int i = 0; i < count; i++) {
            items[i] = (first + i) * 0x9e3779b97f4a7c15L;
        }
        // Until the compiler has done all it does.
        long warm = System.nanoTime() + 3_000_000_000L;
        int found = ask(filter, items);
        while (System.nanoTime() < warm) {
            found = ask(filter, items);
        }
        System.out.println(found);
        for (int round = 0; round < rounds; round++) {
            long start = System.nanoTime();
            int again = ask(filter, items);
            System.out.println((System.nanoTime() - start) / (double) count);
            if (again != found) {
                throw new IllegalStateException(again + " instead of " + found);
            }
        }
    }

    private static int ask(BloomFilter<Long> filter, long[] items) {
        int found = 0;
        for (long item : items) {
            if (filter.mightContain(item)) {
                found++;
            }
        }
        return found;
    }
}

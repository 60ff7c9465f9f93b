// Asks a filter of Guava in a warm JVM: GuavaLookups FILE MEMBERS COUNT
//
// Reads the filter that Tamis wrote. Says that it is ready, and then, at each line that comes, asks for COUNT numbers, each times an
// odd constant, half of them below MEMBERS and so in the filter; prints nanoseconds and how many it has.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;

public class GuavaLookups {
    public static void main(String[] args) throws Exception {
        BloomFilter<Long> filter;
        try (var file = new BufferedInputStream(new FileInputStream(args[0]))) {
            filter = BloomFilter.readFrom(file, Funnels.longFunnel());
        }
        int count = Integer.parseInt(args[2]);
        long first = Long.parseLong(args[1]) - count / 2;
        long[] items = new long[count];
        for (int i = 0; i < count; i++) {
            items[i] = (first + i) * 0x9e3779b97f4a7c15L;
        }
        // Until the compiler has done all it does.
        long warm = System.nanoTime() + 3_000_000_000L;
        while (System.nanoTime() < warm) {
            ask(filter, items);
        }
        System.out.println("ready");
        var turns = new BufferedReader(new InputStreamReader(System.in));
        while (turns.readLine() != null) {
            long start = System.nanoTime();
            int found = ask(filter, items);
            System.out.println((System.nanoTime() - start) + " " + found);
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

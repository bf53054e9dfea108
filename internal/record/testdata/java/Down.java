// Converts each set of a folder down with MemoryRecords.downConvert and writes
// how the result reads. Arguments: the folder.
import java.nio.ByteBuffer;
import java.nio.file.*;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.utils.Time;

final class Down {
    public static void main(String[] args) throws Exception {
        try (DirectoryStream<Path> sets = Files.newDirectoryStream(Path.of(args[0]), "v*.set")) {
            for (Path p : sets) {
                int magic = p.getFileName().toString().charAt(1) - '0';
                for (byte to = 0; to < magic && to < 2; to++)
                    for (long first : new long[]{0, 108}) {
                        MemoryRecords set = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(p)));
                        String text;
                        try {
                            text = Dump.set(set.downConvert(to, first, Time.SYSTEM).records());
                        } catch (Exception e) {
                            text = "ERROR " + Errors.forException(e).code() + "\n";
                        }
                        String name = p.toString().replace(".set", ".down" + to + "-" + first + ".txt");
                        Files.writeString(Path.of(name), text);
                    }
            }
        }
    }
}

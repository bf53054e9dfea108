// Prints what Kafka's own classes read in each set of a folder that Go made.
// Arguments: the folder.
import java.nio.ByteBuffer;
import java.nio.file.*;
import org.apache.kafka.common.record.*;

final class Read {
    public static void main(String[] args) throws Exception {
        try (DirectoryStream<Path> sets = Files.newDirectoryStream(Path.of(args[0]), "*.set")) {
            for (Path p : sets)
                Files.writeString(Path.of(p.toString().replace(".set", ".java.txt")),
                    Dump.set(MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(p)))));
        }
    }
}

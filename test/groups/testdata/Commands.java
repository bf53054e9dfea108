import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

import org.apache.kafka.common.utils.Exit;

/** Runs the main method of a class for each line of standard input, whose words tabs part, and prints a byte 4 after each: CLASS. */
public class Commands {
    static final class Exited extends Error {
    }

    public static void main(String[] args) throws Exception {
        Method main = Class.forName(args[0]).getMethod("main", String[].class);
        Exit.setExitProcedure((code, message) -> {
            throw new Exited();
        });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            try {
                main.invoke(null, (Object) line.split("\t"));
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof Exited)) {
                    e.getCause().printStackTrace();
                }
            }
            System.out.print('\4');
            System.out.flush();
        }
    }
}

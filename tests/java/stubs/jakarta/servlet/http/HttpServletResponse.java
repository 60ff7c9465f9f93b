package jakarta.servlet.http;

import java.io.IOException;
import java.io.PrintWriter;

public interface HttpServletResponse {
    void setStatus(int status);

    void setContentType(String type);

    PrintWriter getWriter() throws IOException;
}

package org.springframework.stereotype;

public @interface Component {
}
